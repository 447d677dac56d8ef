# SPDX-License-Identifier: BSD-3-Clause
#
# How the library target is made: what it links, the headers' front doors, position-independent
# objects, the shared library with its symbol map, and the parts that link the library.
# cmake/PerdureInstall.cmake installs all of it.

# perdure_use_lz4(<target>): links lz4, which is looked for wherever CMake looks (CMAKE_PREFIX_PATH
# and so on), or is what PERDURE_LZ4_INCLUDE and PERDURE_LZ4_LIBRARY say. What is installed has no
# path of this machine in it: there it is perdure::lz4, which perdure-config.cmake defines.
find_path(PERDURE_LZ4_INCLUDE lz4.h)
find_library(PERDURE_LZ4_LIBRARY lz4)
mark_as_advanced(PERDURE_LZ4_INCLUDE PERDURE_LZ4_LIBRARY)
if(NOT PERDURE_LZ4_INCLUDE OR NOT PERDURE_LZ4_LIBRARY)
  perdure_missing(lz4 liblz4-dev)
endif()
function(perdure_use_lz4 target)
  target_include_directories(${target} SYSTEM PRIVATE ${PERDURE_LZ4_INCLUDE})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${PERDURE_LZ4_LIBRARY}>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_libraries(${target} PRIVATE $<INSTALL_INTERFACE:perdure::lz4>)
  endif()
endfunction()

# perdure_use_xxhash(<target>): lets it include xxhash.h, all of which is compiled into the library:
# nothing of it is linked or installed. It is looked for likewise, or is in PERDURE_XXHASH_INCLUDE.
find_path(PERDURE_XXHASH_INCLUDE xxhash.h)
mark_as_advanced(PERDURE_XXHASH_INCLUDE)
if(NOT PERDURE_XXHASH_INCLUDE)
  perdure_missing(xxhash libxxhash-dev)
endif()
function(perdure_use_xxhash target)
  target_include_directories(${target} SYSTEM PRIVATE ${PERDURE_XXHASH_INCLUDE})
endfunction()

# perdure_symbol_map(<target>): a shared library exports what belongs to Perdure, and gives each
# symbol the version of its interface: the templates in its headers use much of namespace perdure,
# so all of that is exported, and nothing else (test install_symbols).
set(PERDURE_ABI ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)  # until 1.0 a minor version may change the interface
  set(PERDURE_ABI 0.${PROJECT_VERSION_MINOR})
endif()
function(perdure_symbol_map target)
  set(map ${PROJECT_BINARY_DIR}/perdure.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/perdure.map.in ${map} @ONLY)
  set_target_properties(${target} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PERDURE_ABI} LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE LINKER:--version-script=${map})
endfunction()

# perdure_shared_library(): with PERDURE_STATIC_AND_SHARED the target perdure_shared, which is
# linked from the objects of `perdure`. To those who find the installed package it is
# perdure::perdure, too: perdure-config.cmake has one of the two.
function(perdure_shared_library)
  get_target_property(type perdure TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    if(PERDURE_STATIC_AND_SHARED)
      message(FATAL_ERROR "perdure: found BUILD_SHARED_LIBS and PERDURE_STATIC_AND_SHARED, "
                          "expected one of them")
    endif()
    perdure_symbol_map(perdure)
  elseif(PERDURE_STATIC_AND_SHARED)
    add_library(perdure_shared SHARED $<TARGET_OBJECTS:perdure>)
    set_target_properties(perdure_shared PROPERTIES
      OUTPUT_NAME perdure EXPORT_NAME perdure LINKER_LANGUAGE CXX)
    target_compile_features(perdure_shared PUBLIC cxx_std_20)
    target_link_libraries(perdure_shared PUBLIC Threads::Threads)
    perdure_use_lz4(perdure_shared)
    perdure_front_doors(perdure_shared)
    if(PERDURE_PMEMCHECK)
      target_compile_definitions(perdure_shared PUBLIC PERDURE_PMEMCHECK=1)
    endif()
    perdure_symbol_map(perdure_shared)
  endif()
endfunction()

# perdure_front_doors(<target>): lets users of the build tree write "perdure/...", and <perdure.hpp>
# and <perdure.h> as after an install. Both short names are one-line headers beside the folder
# perdure/, so that a header has one identity however it is included.
function(perdure_front_doors target)
  set(front ${PROJECT_BINARY_DIR}/front)
  foreach(door IN ITEMS perdure.hpp perdure.h)
    file(CONFIGURE OUTPUT ${front}/${door} @ONLY CONTENT
      "// SPDX-License-Identifier: BSD-3-Clause\n#include \"perdure/${door}\"\n")
  endforeach()
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${front}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# perdure_for_modules(<target>): its objects are position-independent, so that one build serves
# programs and modules that are loaded (SQLite's extension, a user's own shared object).
#
# In a program that costs next to nothing, because nothing is reached through a table or a call
# there: GCC may inline what the target defines (-fno-semantic-interposition), and the linker turns
# initial-exec accesses to thread-local words into local-exec ones. Instructions counted by
# callgrind against a build without it (GCC 12, -O3, default engine, emulated medium): update()
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

# perdure_add_part(<part>): the part's folder. Where Perdure is part of another project, a part is
# built when something links it, unless it is installed.
function(perdure_add_part part)
  if(PERDURE_INSTALL)
    add_subdirectory(${part})
  else()
    add_subdirectory(${part} EXCLUDE_FROM_ALL)
  endif()
endfunction()
