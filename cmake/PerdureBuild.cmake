# SPDX-License-Identifier: BSD-3-Clause
#
# How everything here is compiled: language, warnings, ccache; and small helpers of the root CMakeLists.txt.
# Where Perdure is part of another project (add_subdirectory) that project's own choices stand.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  add_compile_options(-Wall -Wextra -Wshadow -Wconversion)

  find_program(PERDURE_CCACHE ccache)
  mark_as_advanced(PERDURE_CCACHE)
  if(PERDURE_CCACHE)
    foreach(language IN ITEMS C CXX)
      if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
        # another checkout finds what this one has compiled
        set(CMAKE_${language}_COMPILER_LAUNCHER
            ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${PERDURE_CCACHE})
      endif()
    endforeach()
  endif()
endif()

# The distribution's python3 first: another one in PATH may lack the modules (matplotlib) that the package list installs.
find_program(PERDURE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(PERDURE_PYTHON python3)
mark_as_advanced(PERDURE_PYTHON)

# perdure_add_folder(<folder>): add_subdirectory, for a folder that has a CMakeLists.txt.
function(perdure_add_folder folder)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endfunction()

# perdure_require(<package>...): find_package(REQUIRED) that says how to get what is missing. A macro: the results belong to the caller.
macro(perdure_require)
  foreach(package IN ITEMS ${ARGN})
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
      message(FATAL_ERROR "perdure: CMake package ${package} was not found; run './dev setup', install what cmake/packages.txt lists, "
                          "or switch off what needs it (PERDURE_BUILD_TESTS, _TOOLS, _BENCH, _EXAMPLES)")
    endif()
  endforeach()
endmacro()

# perdure_front_doors(<target>): lets users of the build tree write "perdure/...", and <perdure.hpp> and <perdure.h> as after an
# install. Both short names are one-line headers beside the folder perdure/, so that a header has one identity however it is included.
function(perdure_front_doors target)
  set(front ${PROJECT_BINARY_DIR}/front)
  foreach(door IN ITEMS perdure.hpp perdure.h)
    file(CONFIGURE OUTPUT ${front}/${door} CONTENT "// SPDX-License-Identifier: BSD-3-Clause\n#include \"perdure/${door}\"\n" @ONLY)
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${front}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()
