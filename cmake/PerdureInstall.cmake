# SPDX-License-Identifier: BSD-3-Clause
#
# What `cmake --install` lays down: the library, perdure::testing and perdure::papers with
# their headers in include/perdure-testing and include/perdure-papers, include/perdure/** with the
# two front doors include/perdure.hpp and include/perdure.h, the CMake package
# (find_package(perdure)), the pkg-config file (pkg-config perdure) and the man pages. The perdure
# command installs itself (tools/CMakeLists.txt). tests/install proves all of it.
include(CMakePackageConfigHelpers)

install(TARGETS perdure EXPORT perdure-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY
  DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY perdure/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perdure FILES_MATCHING
  PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/front/perdure.hpp ${PROJECT_BINARY_DIR}/front/perdure.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(parts "")
if(PERDURE_BUILD_PAPERS)
  list(APPEND parts papers)
endif()
if(PERDURE_BUILD_TESTING)
  list(APPEND parts testing)
endif()
foreach(part IN LISTS parts)
  install(TARGETS perdure_${part} EXPORT perdure-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${part}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perdure-${part}/${part}
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/perdure)
install(EXPORT perdure-targets NAMESPACE perdure:: DESTINATION ${package_dir})
get_target_property(library_type perdure TYPE)
set(PERDURE_SHARED FALSE)
if(library_type STREQUAL "SHARED_LIBRARY")
  set(PERDURE_SHARED TRUE)
endif()
configure_package_config_file(cmake/perdure-config.cmake.in perdure-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(perdure-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/perdure-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/perdure-config-version.cmake DESTINATION ${package_dir})

# A static library does not contain its C++ run-time and lz4: both are named, so that a C program
# links with plain `pkg-config --libs`. lz4 is named by its own module, so that pkg-config reports
# it if it is missing. A shared library links them itself.
set(PERDURE_PC_PRIVATE "")
set(PERDURE_PC_LIBS "-lstdc++ -pthread")
set(PERDURE_PC_LIBS_PRIVATE "")
if(PERDURE_SHARED)
  set(PERDURE_PC_PRIVATE ".private")
  set(PERDURE_PC_LIBS "")
  set(PERDURE_PC_LIBS_PRIVATE "-lstdc++ -pthread")
endif()
set(PERDURE_PC_DEFINITIONS "")
if(PERDURE_PMEMCHECK)
  set(PERDURE_PC_DEFINITIONS " -DPERDURE_PMEMCHECK=1")
endif()
# Relative to the .pc file where possible, so that an installation may be moved or staged (--prefix,
# DESTDIR).
cmake_path(SET pc_dir NORMALIZE "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${pc_dir}" OUTPUT_VARIABLE
  PERDURE_PC_PREFIX)
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(PERDURE_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(PERDURE_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
set(package_files ${CMAKE_CURRENT_BINARY_DIR}/perdure.pc)
configure_file(cmake/perdure.pc.in perdure.pc @ONLY)
set(papers_description "The engines of four papers over Perdure, and the papers' own calls")
set(testing_description "Perdure's crash explorer and test media")
foreach(part IN LISTS parts)
  set(PERDURE_PC_PART_DESCRIPTION "${${part}_description}")
  configure_file(cmake/perdure-part.pc.in perdure-${part}.pc @ONLY)
  list(APPEND package_files ${CMAKE_CURRENT_BINARY_DIR}/perdure-${part}.pc)
endforeach()
install(FILES ${package_files} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(section IN ITEMS 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()
