# SPDX-License-Identifier: BSD-3-Clause
#
# How everything here is compiled: language, warnings, ccache; and small helpers of the root
# CMakeLists.txt. If Perdure is part of another project (add_subdirectory) that project's own
# choices apply.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel"
      FORCE)
  endif()
  add_compile_options(-Wall -Wextra -Wshadow -Wconversion)
  # GCC 12 warns about std::string's operator+ with a literal, inlined at -O2 and -O3, that "memcpy
  # may overlap": a false alarm, GCC bug 105651, fixed in GCC 13. It depends on what is inlined, so
  # any file may get it.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
    AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12
    AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  # GCC collects its own garbage each time its heap has doubled, from 128 MB on, and a precompiled
  # header fills most of that. From 512 MB on, 18 measured sources take 6% less processor time to
  # compile, the slowest 11% less, and a compiler up to 170 MB more memory. The code is the same.
  if(PERDURE_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
  endif()

  find_program(PERDURE_CCACHE ccache)
  mark_as_advanced(PERDURE_CCACHE)
  if(PERDURE_CCACHE)
    foreach(language IN ITEMS C CXX)
      if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
        # Another checkout finds what this one has compiled.
        set(CMAKE_${language}_COMPILER_LAUNCHER
            ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
            CCACHE_SLOPPINESS=pch_defines,time_macros ${PERDURE_CCACHE})
      endif()
    endforeach()
  endif()
endif()

# The distribution's python3 and no other: the first one in PATH may lack the modules that the
# package list installs.
set(PERDURE_PYTHON /usr/bin/python3 CACHE FILEPATH "the python3 that runs the tests' scripts")
mark_as_advanced(PERDURE_PYTHON)

# perdure_add_folder(<folder>): add_subdirectory, for a folder that has a CMakeLists.txt.
function(perdure_add_folder folder)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endfunction()

# For each imported target that is used: its CMake package and its Debian package, which
# cmake/packages.txt lists, too (test dev_setup_test).
set(PERDURE_TARGET_PACKAGES
  CLI11::CLI11=CLI11=libcli11-dev
  fmt::fmt=fmt=libfmt-dev
  nlohmann_json::nlohmann_json=nlohmann_json=nlohmann-json3-dev
  SQLite::SQLite3=SQLite3=libsqlite3-dev
  GTest::gtest=GTest=libgtest-dev
  GTest::gtest_main=GTest=libgtest-dev
  GTest::gmock=GTest=libgmock-dev)

# perdure_missing(<what> <Debian package>): fails with the error for something that was not found.
function(perdure_missing what package)
  message(FATAL_ERROR
    "perdure: ${what} was not found. On Debian 12 it is in the package ${package}: run './dev \
setup', or 'apt-get install "
                      "${package}'; or switch off what needs it (PERDURE_BUILD_TESTS, _TOOLS, \
_SQLITE, _BENCH, _EXAMPLES)")
endfunction()

# perdure_require(<target>...): finds the CMake package of each imported target, and fails with the
# name of the Debian package if the target does not exist afterwards: a package may be found without
# one of its parts. It is a macro, because the caller must see what was found.
macro(perdure_require)
  foreach(perdure_target IN ITEMS ${ARGN})
    if(NOT "${PERDURE_TARGET_PACKAGES}" MATCHES "${perdure_target}=([^=]+)=([^;]+)")
      message(FATAL_ERROR
        "perdure_require: found ${perdure_target}, expected one of PERDURE_TARGET_PACKAGES")
    endif()
    set(perdure_debian ${CMAKE_MATCH_2})
    find_package(${CMAKE_MATCH_1} QUIET)
    if(NOT TARGET ${perdure_target})
      perdure_missing("the CMake target ${perdure_target}" ${perdure_debian})
    endif()
  endforeach()
endmacro()
