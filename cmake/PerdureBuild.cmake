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

  find_program(PERDURE_CCACHE ccache)
  mark_as_advanced(PERDURE_CCACHE)
  if(PERDURE_CCACHE)
    foreach(language IN ITEMS C CXX)
      if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
        # Another checkout finds what this one has compiled.
        set(CMAKE_${language}_COMPILER_LAUNCHER
            ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
            CCACHE_NOHASHDIR=1 ${PERDURE_CCACHE})
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

# perdure_front_doors(<target>): lets users of the build tree write "perdure/...", and <perdure.hpp>
# and <perdure.h> as after an install. Both short names are one-line headers beside the folder
# perdure/, so that a header has one identity however it is included.
function(perdure_front_doors target)
  set(front ${PROJECT_BINARY_DIR}/front)
  foreach(door IN ITEMS perdure.hpp perdure.h)
    file(CONFIGURE OUTPUT ${front}/${door} CONTENT
      "// SPDX-License-Identifier: BSD-3-Clause\n#include \"perdure/${door}\"\n" @ONLY)
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${front}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# perdure_for_modules(<target>): makes its objects position-independent, so that one build serves
# programs and loaded modules (SQLite's extension, a user's own shared object).
#
# In a program this costs next to nothing, because nothing is reached through a table or a call
# there: GCC may inline what the target defines (-fno-semantic-interposition), and the linker turns
# initial-exec accesses to thread-local words into local-exec ones. Instructions counted by
# callgrind, relative to a build without it (GCC 12, -O3, default engine, emulated medium): update()
# that changes 4 words 1.004 durable and 1.001 async, a put into a hash_map 0.999, view() 1.000.
function(perdure_for_modules target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition;-ftls-model=initial-exec>")
  endif()
endfunction()

# perdure_part(<part>): the target perdure_<part>, of the folder of that name beside perdure/, is
# perdure::<part> to its users, and links the library. Its installed headers lie in a folder of
# their own, include/perdure-<part>, so that only programs that link the part can include
# "<part>/...".
function(perdure_part part)
  add_library(perdure::${part} ALIAS perdure_${part})
  target_link_libraries(perdure_${part} PUBLIC perdure::perdure)
  target_include_directories(perdure_${part}
    INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/perdure-${part}>)
  set_target_properties(perdure_${part} PROPERTIES EXPORT_NAME ${part})
endfunction()
