# SPDX-License-Identifier: BSD-3-Clause
#
# What `cmake --install` lays down, by component. runtime: the shared library. development: the
# static library, headers with the front doors include/perdure.hpp and include/perdure.h, the parts
# perdure::testing, perdure::papers, perdure::nats, perdure::s3 and perdure::plain, as far as they
# were built, each with headers in include/perdure-PART, the CMake package (find_package(perdure))
# and the pkg-config files.
# tools: the perdure command. sqlite: SQLite's extension. documents: licence and man pages.
# tests/install proves all of it; cmake/PerdureDebian.cmake makes a package of each component.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/perdure)
set(parts "")
foreach(part IN ITEMS papers testing nats s3 plain)
  string(TOUPPER ${part} option)
  if(PERDURE_BUILD_${option})
    list(APPEND parts ${part})
  endif()
endforeach()

# The library: static, shared or both. Each has a file of targets of its own, in which it is
# perdure::perdure; the parts, which link perdure::perdure, are in a third.
function(install_library target kind)
  install(TARGETS ${target} EXPORT perdure-${kind}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
  install(EXPORT perdure-${kind} NAMESPACE perdure:: DESTINATION ${package_dir}
    FILE perdure-${kind}-targets.cmake COMPONENT development)
endfunction()
get_target_property(library_type perdure TYPE)
if(library_type STREQUAL "SHARED_LIBRARY")
  set(PERDURE_KINDS shared)
  install_library(perdure shared)
else()
  set(PERDURE_KINDS static)
  install_library(perdure static)
  if(TARGET perdure_shared)
    list(APPEND PERDURE_KINDS shared)
    install_library(perdure_shared shared)
  endif()
endif()

install(DIRECTORY perdure/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perdure COMPONENT development
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/front/perdure.hpp ${PROJECT_BINARY_DIR}/front/perdure.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
foreach(part IN LISTS parts)
  install(TARGETS perdure_${part} EXPORT perdure-parts
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(DIRECTORY ${part}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perdure-${part}/${part}
    COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h"
    PATTERN cross EXCLUDE PATTERN figures EXCLUDE PATTERN report EXCLUDE)  # have no header
endforeach()
if(parts)
  install(EXPORT perdure-parts NAMESPACE perdure:: DESTINATION ${package_dir}
    FILE perdure-parts-targets.cmake COMPONENT development)
endif()

configure_package_config_file(cmake/perdure-config.cmake.in
  ${PROJECT_BINARY_DIR}/perdure-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/perdure-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/perdure-config.cmake
  ${PROJECT_BINARY_DIR}/perdure-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# pkg-config. A static library does not carry its C++ run-time and lz4 along: both are named, so
# that a C program links with plain `pkg-config --libs`. lz4 is named by its own module, so that
# pkg-config says so if it is not there. A shared library links them itself, and where both are
# installed it is the one that -lperdure means: then `pkg-config --static` names them.
set(PERDURE_PC_PRIVATE "")
set(PERDURE_PC_LIBS "-lstdc++ -pthread")
set(PERDURE_PC_LIBS_PRIVATE "")
if(shared IN_LIST PERDURE_KINDS)
  set(PERDURE_PC_PRIVATE ".private")
  set(PERDURE_PC_LIBS "")
  set(PERDURE_PC_LIBS_PRIVATE "-lstdc++ -pthread")
endif()
set(PERDURE_PC_DEFINITIONS "")
if(PERDURE_PMEMCHECK)
  set(PERDURE_PC_DEFINITIONS " -DPERDURE_PMEMCHECK=1")
endif()
# Relative to the .pc file where possible, so that an install may be moved or staged (--prefix,
# DESTDIR); in a package absolute: pkg-config leaves out what the compiler searches by itself.
if(PERDURE_DEBIAN)
  set(PERDURE_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  cmake_path(SET pc_dir NORMALIZE "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${pc_dir}" OUTPUT_VARIABLE upwards)
  set(PERDURE_PC_PREFIX "\${pcfiledir}/${upwards}")
endif()
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(PERDURE_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(PERDURE_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
set(package_files ${PROJECT_BINARY_DIR}/perdure.pc)
configure_file(cmake/perdure.pc.in ${PROJECT_BINARY_DIR}/perdure.pc @ONLY)
set(papers_description "The engines of four papers over Perdure, and the papers' own calls")
set(testing_description "Perdure's crash explorer and test media")
set(nats_description "Perdure's replicated log on NATS JetStream")
set(s3_description "Perdure's archives, backups and replicated logs in S3-compatible stores")
set(s3_needs ", libcurl, pugixml")
set(plain_description "Blocks of plain code as transactions of Perdure, with GCC's -fgnu-tm")
set(plain_flags
  " -fgnu-tm -fno-tree-pta -Wno-clobbered -fplugin=\${libdir}/perdure/perdure_plain_check.so")
foreach(part IN LISTS parts)
  set(PERDURE_PC_PART_NAME ${part})
  set(PERDURE_PC_PART_DESCRIPTION "${${part}_description}")
  set(PERDURE_PC_PART_NEEDS "${${part}_needs}")
  set(PERDURE_PC_PART_FLAGS "${${part}_flags}")
  configure_file(cmake/perdure-part.pc.in ${PROJECT_BINARY_DIR}/perdure-${part}.pc @ONLY)
  list(APPEND package_files ${PROJECT_BINARY_DIR}/perdure-${part}.pc)
endforeach()
if(TARGET perdure_plain_pass)
  set(part plain)
  set(PERDURE_PC_PART_NAME plain-clang)
  set(PERDURE_PC_PART_DESCRIPTION
    "Blocks of plain code as transactions of Perdure, with a pass of Clang 19")
  set(PERDURE_PC_PART_NEEDS "")
  set(PERDURE_PC_PART_FLAGS " -fpass-plugin=\${libdir}/perdure/perdure_plain_pass.so")
  configure_file(cmake/perdure-part.pc.in ${PROJECT_BINARY_DIR}/perdure-plain-clang.pc @ONLY)
  list(APPEND package_files ${PROJECT_BINARY_DIR}/perdure-plain-clang.pc)
endif()
install(FILES ${package_files} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

foreach(plug_in IN ITEMS perdure_plain_check perdure_plain_pass)
  if(TARGET ${plug_in})
    install(TARGETS ${plug_in}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/perdure COMPONENT development)
  endif()
endforeach()
if(TARGET perdure_command)
  install(TARGETS perdure_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  # Units to copy and change (docs/operations.md).
  install(DIRECTORY packaging/systemd DESTINATION ${CMAKE_INSTALL_DATADIR}/perdure COMPONENT tools)
endif()
if(TARGET perdure_vfs)
  install(TARGETS perdure_vfs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/perdure COMPONENT sqlite)
endif()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
foreach(section IN ITEMS 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT documents)
  endif()
endforeach()
