# SPDX-License-Identifier: BSD-3-Clause
#
# Checks one case: FILE must not compile, with the message that its line `// EXPECT: regex` states,
# and must compile with -DPERDURE_CONTROL. COMPILE is the compiler with its flags. The generated
# check_here.cmake includes this file.

function(refuse reason details)
  message("${details}")
  message(FATAL_ERROR "REFUSED ${reason}")
endfunction()

file(STRINGS ${FILE} expected REGEX "^// EXPECT: " LIMIT_COUNT 1)
string(REGEX REPLACE "^// EXPECT: " "" expected "${expected}")
if(expected STREQUAL "")
  refuse("no expectation" "${FILE} has no line '// EXPECT: regex'")
endif()

set(ENV{LC_ALL} C)  # messages in English, whatever the user's settings
execute_process(COMMAND ${COMPILE} -fsyntax-only -DPERDURE_CONTROL ${FILE} RESULT_VARIABLE result
  ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  refuse("broken control"
    "${FILE} does not compile with PERDURE_CONTROL, so it proves nothing:\n${output}")
endif()

execute_process(COMMAND ${COMPILE} -fsyntax-only ${FILE} RESULT_VARIABLE result
  ERROR_VARIABLE output)
if(result EQUAL 0)
  refuse("it compiles" "${FILE} was expected to fail with '${expected}'")
endif()
if(NOT output MATCHES "${expected}")
  refuse("wrong message" "${FILE} was expected to fail with '${expected}', found:\n${output}")
endif()
message(STATUS "refused by the compiler, as it must be: ${FILE}")
