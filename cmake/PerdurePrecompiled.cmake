# SPDX-License-Identifier: BSD-3-Clause
#
# Precompiled headers of what is not a test (PERDURE_PRECOMPILED_HEADERS; of tests:
# tests/support/CMakeLists.txt). They hold the standard library, or what the tools need besides, and
# nothing of the project: a changed header is to rebuild the sources that include it and no others.
# The presets release, package, bench and fuzz do without, so a source that lacks an #include does
# not compile there.

# perdure_precompile(<target> <header> [<library>...]): the target's C++ sources start from
# cmake/precompiled/<header>.hpp, which includes headers of these libraries. Position-independent
# targets have a header of their own, because GCC refuses one that was compiled otherwise.
function(perdure_precompile target header)
  if(NOT PERDURE_PRECOMPILED_HEADERS)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  get_target_property(independent ${target} POSITION_INDEPENDENT_CODE)
  set(name perdure_precompiled_${header})
  if(type STREQUAL "MODULE_LIBRARY" OR independent)
    string(APPEND name _pic)
  endif()
  if(NOT TARGET ${name})
    set(folder ${PROJECT_SOURCE_DIR}/cmake/precompiled)
    # It has no compile definitions but those of the libraries: GCC refuses the header where one is
    # missing.
    add_library(${name} OBJECT ${folder}/empty.cpp)
    target_link_libraries(${name} PRIVATE ${ARGN})
    target_compile_features(${name} PRIVATE cxx_std_20)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_precompile_headers(${name} PRIVATE ${folder}/${header}.hpp)
    if(name MATCHES "_pic$")
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()
