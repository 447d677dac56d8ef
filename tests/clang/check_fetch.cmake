# SPDX-License-Identifier: BSD-3-Clause
#
# Builds and runs a project that takes this checkout in with FetchContent (fetch/CMakeLists.txt,
# which looks for what leaks into it). See CMakeLists.txt beside this for what is passed.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../install/run.cmake)

set(jobs 2)
if(DEFINED ENV{PERDURE_JOBS})
  set(jobs $ENV{PERDURE_JOBS})
endif()
file(REMOVE_RECURSE ${WORK})
run("" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/fetch -B ${WORK}/build -G ${GENERATOR}
  -D CHECKOUT=${CHECKOUT} -D CONSUMER=${CONSUMER}
  -D CMAKE_CXX_COMPILER=${CXX}
  -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D FETCHCONTENT_FULLY_DISCONNECTED=ON
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0)  # 54 s of processor time
run("" ${CMAKE_COMMAND} --build ${WORK}/build --parallel ${jobs})
run("visits: 1" ${WORK}/build/programs/fetching ${WORK}/fetch.pool)
run("visits: 2" ${WORK}/build/programs/fetching ${WORK}/fetch.pool)

# The library and the project's own program, and nothing else of Perdure's.
file(GLOB_RECURSE built RELATIVE ${WORK}/build LIST_DIRECTORIES OFF
  ${WORK}/build/*.a ${WORK}/build/*.so* ${WORK}/build/programs/* ${WORK}/build/*.o)
set(objects ${built})
list(FILTER built EXCLUDE REGEX "[.]o$")
list(SORT built)
if(NOT built STREQUAL "archives/libperdure.a;programs/fetching")
  message(FATAL_ERROR
    "found '${built}' built, expected archives/libperdure.a and programs/fetching")
endif()
list(FILTER objects INCLUDE REGEX
  "^_deps/.*/(papers|testing|tools|sqlite|examples|tests|bench)/.*[.]o$")
if(objects)
  message(FATAL_ERROR "found '${objects}' compiled, expected the library's sources alone")
endif()

# A part is built when something links it, and only then; nothing of Perdure's is installed with
# the project.
run("" ${CMAKE_COMMAND} --install ${WORK}/build --prefix ${WORK}/prefix)
file(GLOB_RECURSE installed ${WORK}/prefix/*)
if(installed)
  message(FATAL_ERROR "found '${installed}' installed, expected nothing: PERDURE_INSTALL is off")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --target perdure_papers -- -n
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0 OR NOT output MATCHES "libperdure_papers")
  message(FATAL_ERROR "found '${output}', expected that perdure_papers can be built")
endif()
