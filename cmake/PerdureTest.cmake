# SPDX-License-Identifier: BSD-3-Clause
#
# perdure_add_test(<name> SOURCES <file>... [LABELS <label>...] [TIMEOUT <seconds>]
#                  [CASE_LIMIT <seconds>] [LIBS <target>...]
#                  [ENVIRONMENT <VAR=value>...] [ARGS <argument>...] [HEAVY] [SERIAL]
#                  [NO_MAIN])
#
# Builds the executable <name> from GoogleTest sources and registers it as ONE ctest test of the
# same name: one process per binary, not per case, keeps `ctest` fast, and -R with a name is enough
# to run it. Its label is its folder (ctest -L medium).
#   TIMEOUT      by default 300 seconds; the test then counts as failed. It is for hangs: several
#                times the time on a busy machine.
#   CASE_LIMIT   by default 60 seconds for each case (times 4 with the sanitizers): then the stacks
#                of all threads are printed and the program aborts (tests/support/watchdog.hpp). A
#                longer limit needs a reason beside it: it is for cases that explore for long, not
#                for cases that wait.
#   LIBS         in addition to perdure::testing, perdure::papers (whose engines are registered),
#                gtest and gmock.
#   HEAVY        it runs for long in code that it compiles itself: optimised in every preset and
#                folder.
#   SERIAL       no other test runs meanwhile: for tests that count system-wide things or measure
#                time.
#   NO_MAIN      the sources have their own main().
#   LABELS       in addition to the folder's. `threads`: it runs several threads at once, so that
#                ThreadSanitizer can find something in it.
# `./dev test --label L` builds the tests with that label only: target label-L (perdure_label adds
# programs to it that are made by hand). The target is an ordinary one: add_dependencies(),
# target_compile_definitions() and so on work on <name>.
#
# perdure_add_run(<name> PROGRAM <target> [LABELS <label>...] [TIMEOUT <seconds>]
#                 [ENVIRONMENT <VAR=value>...] [ARGS <argument>...])
#
# A test that runs a program of this folder: one more run of a test's, or a program made by hand.
# Each of its labels builds the program.

# Preset asan: no test is optimised, nor are the headers precompiled for them. (Preset fuzz has
# another list of sanitizers, and its tests are optimised.)
string(REGEX MATCH "fsanitize=[a-z,]*address" PERDURE_UNOPTIMISED_TESTS "${CMAKE_CXX_FLAGS}")

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

# perdure_quick(<test>...): adds the tests to those that `./dev test --quick` builds and runs: a few
# of each layer, cheap to compile, that run for a few seconds at most.
function(perdure_quick)
  foreach(name IN LISTS ARGN)
    set_property(TEST ${name} APPEND PROPERTY LABELS quick)
    if(TARGET ${name})
      perdure_label(${name} quick)
    endif()
  endforeach()
endfunction()

# perdure_watch(<target> [<seconds>]): links the watchdog, with another limit for each case; the
# target's functions have names in the stacks.
function(perdure_watch target)
  target_link_libraries(${target} PRIVATE perdure_test_watchdog)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  if(ARGN)
    set(source ${PROJECT_BINARY_DIR}/case_limits/limit_${ARGN}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT
      "extern \"C\" { extern const unsigned perdure_case_limit_s; \
const unsigned perdure_case_limit_s = @ARGN@; }\n" @ONLY)
    target_sources(${target} PRIVATE ${source})
  endif()
endfunction()

# perdure_test_engines(<variable>): the environment of tests of all engines. Without the group
# `papers` they run on the product's.
function(perdure_test_engines variable)
  if(papers IN_LIST PERDURE_TEST_GROUPS)
    set(${variable} PERDURE_TEST_ENGINES=all PARENT_SCOPE)
  else()
    set(${variable} PERDURE_TEST_ENGINES=product PARENT_SCOPE)
  endif()
endfunction()

function(perdure_add_run name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PROGRAM;TIMEOUT" "LABELS;ENVIRONMENT;ARGS")
  if(arg_UNPARSED_ARGUMENTS OR NOT TARGET "${arg_PROGRAM}")
    message(FATAL_ERROR
      "perdure_add_run(${name}): found '${arg_UNPARSED_ARGUMENTS}' and PROGRAM '${arg_PROGRAM}', \
expected PROGRAM <target> and the options of cmake/PerdureTest.cmake")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  add_test(NAME ${name} COMMAND ${arg_PROGRAM} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${folder};${arg_LABELS}"
    ENVIRONMENT "${arg_ENVIRONMENT}")
  perdure_label(${arg_PROGRAM} ${folder} ${arg_LABELS})
endfunction()

function(perdure_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HEAVY;SERIAL;NO_MAIN" "TIMEOUT;CASE_LIMIT"
    "SOURCES;LABELS;LIBS;ENVIRONMENT;ARGS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR
      "perdure_add_test(${name}): found '${arg_UNPARSED_ARGUMENTS}', expected SOURCES <file>... \
and the options of cmake/PerdureTest.cmake")
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  perdure_test_engines(engines)
  list(APPEND arg_ENVIRONMENT ${engines})

  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE perdure::testing perdure_papers_registered ${arg_LIBS}
                                        GTest::gmock GTest::gtest perdure_test_cases)
  perdure_watch(${name} ${arg_CASE_LIMIT})
  if(NOT arg_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  # How tests are optimised, which is how long they take to compile. Some run for long in code that
  # they compile themselves, or look for races in it: those are as the library is. Others compile
  # many templates and run for seconds: they are not optimised, which takes half of the time of -O1;
  # but containers' comparisons with the standard library's run for long. All others have -O1, two
  # thirds of the library's -O2. With ASan and UBSan, code that is not optimised compiles in a third
  # of the time (the tests; the library stays as it is).
  set(precompiled ON)
  set(kind "")
  if(arg_HEAVY OR folder MATCHES "^(conformance|crash|golden)$")
    if(PERDURE_UNOPTIMISED_TESTS)
      set(precompiled OFF)  # the header is compiled with -O0, and Clang refuses it here
    endif()
  elseif(PERDURE_UNOPTIMISED_TESTS)
    target_compile_options(${name} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE MATCHES "^Rel")
    if(folder MATCHES "^(api|inspect|value)$"
       OR (folder STREQUAL "container" AND NOT name MATCHES "_(map|values|walk)_dram_test$"))
      target_compile_options(${name} PRIVATE -O0)
      set(kind _unoptimised)
    elseif(NOT folder MATCHES "^(papers|tm)$")
      target_compile_options(${name} PRIVATE -O1)
    endif()
  endif()
  if(precompiled AND PERDURE_PRECOMPILED_HEADERS)
    if(folder MATCHES "^(api|compat|conformance|container|crash|engine|faults|fuzz|golden|inspect\
|kill|papers|sqlite)$")
      target_precompile_headers(${name} REUSE_FROM perdure_pool_test${kind}_precompiled)
    else()
      target_precompile_headers(${name} REUSE_FROM perdure_test${kind}_precompiled)
    endif()
  endif()

  perdure_add_run(${name} PROGRAM ${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT ${arg_ENVIRONMENT} ARGS ${arg_ARGS})
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# perdure_add_script(<name> SCRIPT <file.py> [ARGS <argument>...] [TIMEOUT <seconds>]
#                    [ENVIRONMENT <VAR=value>...] [PROCESSORS <n>])
#
# A test that is a Python script, run by PERDURE_PYTHON, labelled with its folder. TIMEOUT as above.
# Its cases have limits of their own (tests/support/limits.py).
function(perdure_add_script name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCRIPT;TIMEOUT;PROCESSORS" "ARGS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SCRIPT)
    message(FATAL_ERROR
      "perdure_add_script(${name}): found '${arg_UNPARSED_ARGUMENTS}', expected SCRIPT <file.py> \
and the options of cmake/PerdureTest.cmake")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(factor 1)
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
    set(factor 4)  # as in tests/support/watchdog.cpp
  endif()
  add_test(NAME ${name} COMMAND ${PERDURE_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT}
    ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS ${folder} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT
    "PYTHONDONTWRITEBYTECODE=1;PERDURE_SOURCE=${PROJECT_SOURCE_DIR};\
PERDURE_LIMIT_FACTOR=${factor};${arg_ENVIRONMENT}")
  if(arg_PROCESSORS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${arg_PROCESSORS})
  endif()
endfunction()
