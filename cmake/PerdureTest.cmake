# SPDX-License-Identifier: BSD-3-Clause
#
# perdure_add_test(<name> SOURCES <file>... [LABELS <label>...] [TIMEOUT <seconds>] [LIBS <target>...] [ENVIRONMENT <VAR=value>...]
#                  [ARGS <argument>...] [SERIAL] [NO_MAIN])
#
# Builds the executable <name> from GoogleTest sources and registers it as ONE ctest test of the same name: a process a binary, not
# a process a case, keeps `ctest` fast, and -R with a name is enough to run it. It is labelled with its folder (ctest -L medium).
#   TIMEOUT      300 seconds unless said; the test counts as failed after that. For hangs: several times what it takes on a busy machine.
#   LIBS         beside perdure::perdure, gtest and gmock.
#   SERIAL       nothing else runs meanwhile: for tests that count system-wide things or measure time.
#   NO_MAIN      the sources bring their own main().
#   LABELS       beside the folder's. `threads`: it runs several at once, so ThreadSanitizer has something to say of it.
# `./dev test --label L` builds the tests with a label only: target label-L (perdure_label adds programs to it that are made by hand).
# The target is an ordinary one: add_dependencies(), target_compile_definitions() and so on work on <name>.

function(perdure_label target)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET label-${label})
      add_custom_target(label-${label})
    endif()
    if(target)
      add_dependencies(label-${label} ${target})
    endif()
  endforeach()
endfunction()

function(perdure_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL;NO_MAIN" "TIMEOUT" "SOURCES;LABELS;LIBS;ENVIRONMENT;ARGS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "perdure_add_test(${name}): found '${arg_UNPARSED_ARGUMENTS}', expected SOURCES <file>... and the options of cmake/PerdureTest.cmake")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)

  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE perdure::perdure ${arg_LIBS} GTest::gmock GTest::gtest)
  if(NOT arg_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()

  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${folder};${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}")
  perdure_label(${name} ${folder} ${arg_LABELS})
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
