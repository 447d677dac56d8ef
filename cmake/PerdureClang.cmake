# SPDX-License-Identifier: BSD-3-Clause
#
# Objects that Clang 19 compiles, with the pass for blocks of plain code (perdure::plain), for
# programs whose rest another compiler has compiled.
if(NOT TARGET perdure_plain_pass)
  message(FATAL_ERROR "perdure: found programs for Clang's pass without PERDURE_BUILD_PLAIN_PASS, \
expected both or neither: switch one on or the other off")
endif()
find_program(PERDURE_PLAIN_CLANG clang-19)
find_program(PERDURE_PLAIN_CLANGXX clang++-19)
mark_as_advanced(PERDURE_PLAIN_CLANG PERDURE_PLAIN_CLANGXX)
if(NOT PERDURE_PLAIN_CLANG OR NOT PERDURE_PLAIN_CLANGXX)
  perdure_missing(clang++-19 clang-19)
endif()

# perdure_clang_object(<variable> <source> [<flag>...]): sets the variable to the object file.
function(perdure_clang_object variable source)
  cmake_path(GET source EXTENSION suffix)
  set(compiler ${PERDURE_PLAIN_CLANG} -std=c11)
  if(suffix STREQUAL ".cpp")
    set(compiler ${PERDURE_PLAIN_CLANGXX} -std=c++20)
  endif()
  cmake_path(GET source FILENAME name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/clang_${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${compiler} ${ARGN} -Wall -Wextra -fpass-plugin=$<TARGET_FILE:perdure_plain_pass>
      -I${PROJECT_SOURCE_DIR} -I${PROJECT_BINARY_DIR}/front -MD -MF ${object}.d
      -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} perdure_plain_pass DEPFILE ${object}.d
    COMMENT "Compiling ${source} with Clang and the pass" VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${variable} ${object} PARENT_SCOPE)
endfunction()
