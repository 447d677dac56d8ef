# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the README's program twice in a fresh folder; its output must be what the README shows (its
# block after "prints"), and every file and folder of this repository to which the README links must
# exist.
file(READ ${README} text)
if(NOT text MATCHES "\n```text\n([^\n]+)\n([^\n]+)\n```")
  message(FATAL_ERROR
    "${README}: found no \`\`\`text block of two lines, expected what two runs of the program \
print")
endif()
set(expected "${CMAKE_MATCH_1}\n" "${CMAKE_MATCH_2}\n")

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
foreach(line IN LISTS expected)
  execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result
    OUTPUT_VARIABLE output ERROR_VARIABLE error)
  if(NOT result EQUAL 0 OR NOT output STREQUAL line)
    message(FATAL_ERROR
      "found result ${result}, '${output}' and '${error}', expected 0 and '${line}'")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
