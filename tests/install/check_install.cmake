# SPDX-License-Identifier: BSD-3-Clause
# See CMakeLists.txt beside this, which passes BUILD, WORK, CONFIG, VERSION, LIBDIR, GENERATOR, CC, CXX, C_FLAGS and CXX_FLAGS.

function(run expected)  # run(<regex of the output> <command>...)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  list(JOIN ARGN " " command)
  message(STATUS "${command}")
  if(NOT result EQUAL 0 OR NOT output MATCHES "${expected}")
    message("${output}")
    message(FATAL_ERROR "found result ${result} and the output above, expected 0 and '${expected}'")
  endif()
endfunction()

function(use_it how program c_program)  # the pool outlives the process that made it
  run("visits: 1" ${program} ${WORK}/${how}.pool)
  run("visits: 2" ${program} ${WORK}/${how}.pool)
  run("perdure ${VERSION}" ${c_program})
endfunction()

set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
run("perdure.hpp" ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${WORK}/staged)
file(RENAME ${WORK}/staged ${prefix})  # whoever packages this moves it: nothing may hold the path of the install
foreach(file IN ITEMS include/perdure.hpp include/perdure.h include/perdure/base/status.hpp include/perdure-testing/testing/crashtest.hpp
        include/perdure-papers/papers/rewind/rewind_calls.hpp ${LIBDIR}/pkgconfig/perdure.pc)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# By find_package.
run("" ${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/cmake -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${prefix} -D WANTED=${VERSION}
  -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_FLAGS=${C_FLAGS} -D CMAKE_CXX_FLAGS=${CXX_FLAGS})
run("" ${CMAKE_COMMAND} --build ${WORK}/cmake)
use_it(cmake ${WORK}/cmake/consumer ${WORK}/cmake/consumer_c)
run("^explored" ${WORK}/cmake/consumer_testing)

# A static library's users need lz4: where it is not, both packages say so, by name.
function(fails expected)  # fails(<regex of the output> <command>...)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  list(JOIN ARGN " " command)
  message(STATUS "${command}, which must fail")
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(result EQUAL 0 OR NOT output MATCHES "${expected}")
    message(FATAL_ERROR "found result ${result} and '${output}', expected a failure and '${expected}'")
  endif()
endfunction()
if(EXISTS ${prefix}/${LIBDIR}/libperdure.a)
  file(WRITE ${WORK}/no_libraries.cmake "set(CMAKE_FIND_LIBRARY_PREFIXES no-such-prefix-)\n")
  fails("needs the library lz4 .liblz4., which was not found; on Debian it is in the package liblz4-dev" ${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/no_lz4 -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${prefix} -D WANTED=${VERSION} -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_PROJECT_INCLUDE=${WORK}/no_libraries.cmake)
  fails("liblz4.*required by .perdure.*not found" ${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=${prefix}/${LIBDIR}/pkgconfig pkg-config --libs perdure)
endif()

# By pkg-config, as in a Makefile: no CMake, and a C program needs nothing that `pkg-config --libs` does not say.
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR}:$ENV{LD_LIBRARY_PATH})  # for a shared library
foreach(question IN ITEMS cflags libs)
  execute_process(COMMAND pkg-config --${question} perdure OUTPUT_VARIABLE ${question} OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(${question} UNIX_COMMAND "${${question}}")
endforeach()
run("${VERSION}" pkg-config --modversion perdure)
separate_arguments(C_FLAGS)
separate_arguments(CXX_FLAGS)
run("" ${CXX} ${CXX_FLAGS} -std=c++20 ${cflags} ${consumer}/main.cpp -o ${WORK}/consumer ${libs})
run("" ${CC} ${C_FLAGS} -std=c11 -Wall -Werror ${cflags} ${consumer}/main.c -o ${WORK}/consumer_c ${libs})
use_it(pkg_config ${WORK}/consumer ${WORK}/consumer_c)
foreach(question IN ITEMS cflags libs)
  execute_process(COMMAND pkg-config --${question} perdure-testing OUTPUT_VARIABLE ${question} OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(${question} UNIX_COMMAND "${${question}}")
endforeach()
run("" ${CXX} ${CXX_FLAGS} -std=c++20 ${cflags} ${consumer}/crashtest.cpp -o ${WORK}/consumer_testing ${libs})
run("^explored" ${WORK}/consumer_testing)

if(EXISTS ${prefix}/bin/perdure)
  run("${VERSION}" ${prefix}/bin/perdure --version)
endif()
