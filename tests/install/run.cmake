# SPDX-License-Identifier: BSD-3-Clause
# What the scripts beside this use.

function(run expected)  # run(<regex of the output> <command>...)
  execute_process(COMMAND ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  list(JOIN ARGN " " command)
  message(STATUS "${command}")
  if(NOT result EQUAL 0 OR NOT output MATCHES "${expected}")
    message("${output}")
    message(FATAL_ERROR "found result ${result} and the output above, expected 0 and '${expected}'")
  endif()
endfunction()
