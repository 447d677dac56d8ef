# SPDX-License-Identifier: BSD-3-Clause
#
# Installs this build into a fresh folder, moves that, and uses it as a stranger would: by
# find_package(perdure) and by pkg-config, each kind of library that was built. See CMakeLists.txt
# beside this, which passes BUILD, WORK, CONFIG, VERSION, LIBDIR, KINDS (static,shared), BESIDE
# (nats,s3,plain), GENERATOR, CC, CXX, C_FLAGS and CXX_FLAGS.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
string(REPLACE "," ";" KINDS "${KINDS}")
string(REPLACE "," ";" parts "${BESIDE}")

function(use_it how program c_program)  # the pool outlives the process that made it
  run("visits: 1" ${program} ${WORK}/${how}.pool)
  run("visits: 2" ${program} ${WORK}/${how}.pool)
  run("perdure ${VERSION}" ${c_program})
endfunction()

function(must_link kind program)  # the program loads the shared library, or holds the static one
  execute_process(COMMAND readelf -d ${program} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
  set(found static)
  if(dynamic MATCHES "NEEDED[^\n]*libperdure[.]so[.]")
    set(found shared)
  endif()
  if(NOT found STREQUAL kind)
    message(FATAL_ERROR "${program}: found the ${found} library, expected the ${kind} one")
  endif()
endfunction()

set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
run("perdure.hpp" ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${WORK}/staged)
file(RENAME ${WORK}/staged ${prefix})  # packages are moved: nothing may hold the install's path
foreach(file IN ITEMS include/perdure.hpp include/perdure.h include/perdure/base/status.hpp
        include/perdure-testing/testing/crashtest.hpp
        include/perdure-papers/papers/rewind/rewind_calls.hpp ${LIBDIR}/pkgconfig/perdure.pc)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# xxhash.h is compiled into the library: nothing that is installed includes it or asks for it.
file(GLOB_RECURSE installed ${prefix}/include/* ${prefix}/${LIBDIR}/cmake/*
  ${prefix}/${LIBDIR}/pkgconfig/*)
foreach(file IN LISTS installed)
  file(STRINGS ${file} named REGEX "xxhash[.]h|libxxhash")
  if(named)
    message(FATAL_ERROR "${file}: found '${named}', expected nothing of xxhash")
  endif()
endforeach()

# By find_package.
set(configure ${CMAKE_COMMAND} -S ${consumer} -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${prefix}
  -D WANTED=${VERSION} -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX})
set(flags "-DCMAKE_C_FLAGS=${C_FLAGS}" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
foreach(kind IN LISTS KINDS)
  run("" ${configure} -B ${WORK}/${kind} -D KIND=${kind} -D BESIDE=${BESIDE} ${flags})
  run("" ${CMAKE_COMMAND} --build ${WORK}/${kind})
  must_link(${kind} ${WORK}/${kind}/consumer)
  use_it(cmake_${kind} ${WORK}/${kind}/consumer ${WORK}/${kind}/consumer_c)
  run("^explored" ${WORK}/${kind}/consumer_testing)
  foreach(part IN LISTS parts)
    run("^refused" ${WORK}/${kind}/consumer_${part})
    if(EXISTS ${WORK}/${kind}/consumer_c_${part})
      run("" ${WORK}/${kind}/consumer_c_${part})
    endif()
  endforeach()
endforeach()

function(fails expected)  # fails(<regex of the output> <command>...)
  execute_process(COMMAND ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  list(JOIN ARGN " " command)
  message(STATUS "${command}, which must fail")
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(result EQUAL 0 OR NOT output MATCHES "${expected}")
    message(FATAL_ERROR
      "found result ${result} and '${output}', expected a failure and '${expected}'")
  endif()
endfunction()

# One program has one of the two libraries, also where two of its directories look for it.
if(KINDS STREQUAL "static;shared")
  fails("found the static library perdure before, and now .shared. is asked for"
    ${configure} -B ${WORK}/both -D KIND=static -D ALSO=shared)
endif()

# A static library's users need lz4: where it is not, both packages say so, by name.
if(static IN_LIST KINDS)
  file(WRITE ${WORK}/no_libraries.cmake "set(CMAKE_FIND_LIBRARY_PREFIXES no-such-prefix-)\n")
  fails("needs the library lz4 .liblz4., which was not found; on Debian it is in the package \
liblz4-dev"
    ${configure} -B ${WORK}/no_lz4 -D KIND=static
    -D CMAKE_PROJECT_INCLUDE=${WORK}/no_libraries.cmake)
  fails("liblz4.*required by .perdure.*not found" ${CMAKE_COMMAND} -E env
    PKG_CONFIG_LIBDIR=${prefix}/${LIBDIR}/pkgconfig pkg-config --static --libs perdure)
endif()

# By pkg-config, as in a Makefile: no CMake, and a C program needs nothing that pkg-config does not
# say. -lperdure is the shared library where there is one.
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR}:$ENV{LD_LIBRARY_PATH})
function(ask variable)  # ask(<variable> <question to pkg-config>...)
  execute_process(COMMAND pkg-config ${ARGN} OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(answer UNIX_COMMAND "${answer}")
  set(${variable} "${answer}" PARENT_SCOPE)
endfunction()
run("${VERSION}" pkg-config --modversion perdure)
separate_arguments(C_FLAGS)
separate_arguments(CXX_FLAGS)
foreach(kind IN LISTS KINDS)
  ask(cflags --cflags perdure)
  if(kind STREQUAL "static" AND shared IN_LIST KINDS)
    ask(libs --static --libs perdure)
    list(TRANSFORM libs REPLACE "^-lperdure$" "-l:libperdure.a")
  else()
    ask(libs --libs perdure)
  endif()
  set(program ${WORK}/consumer_${kind})
  run("" ${CXX} ${CXX_FLAGS} -std=c++20 ${cflags} ${consumer}/main.cpp -o ${program} ${libs})
  run("" ${CC} ${C_FLAGS} -std=c11 -Wall -Werror ${cflags} ${consumer}/main.c
    -o ${program}_c ${libs})
  must_link(${kind} ${program})
  use_it(pkg_config_${kind} ${program} ${program}_c)
endforeach()
ask(cflags --cflags perdure-testing)
ask(libs --libs perdure-testing)
run("" ${CXX} ${CXX_FLAGS} -std=c++20 ${cflags} ${consumer}/crashtest.cpp
  -o ${WORK}/consumer_testing ${libs})
run("^explored" ${WORK}/consumer_testing)
foreach(part IN LISTS parts)
  ask(cflags --cflags perdure-${part})
  ask(libs --libs perdure-${part})
  run("" ${CXX} ${CXX_FLAGS} -std=c++20 ${cflags} ${consumer}/${part}.cpp
    -o ${WORK}/consumer_${part} ${libs})
  run("^refused" ${WORK}/consumer_${part})
endforeach()
if(CLANGXX)
  ask(cflags --cflags perdure-plain-clang)
  ask(libs --libs perdure-plain-clang)
  run("" ${CLANGXX} -std=c++20 ${cflags} ${consumer}/plain.cpp -o ${WORK}/consumer_pass ${libs})
  run("^refused" ${WORK}/consumer_pass)
endif()

if(EXISTS ${prefix}/bin/perdure)
  run("${VERSION}" ${prefix}/bin/perdure --version)
endif()
