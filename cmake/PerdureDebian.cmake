# SPDX-License-Identifier: BSD-3-Clause
#
# Debian packages, one of each component of cmake/PerdureInstall.cmake: what CPack is told, and what
# Debian wants in each package besides. packaging/debian.py (`./dev package`) runs CPack and looks
# at what it made. The packages: libperdure<MAJOR>.<MINOR> (the shared library; two of them can be
# installed side by side), libperdure-dev, perdure-tools, perdure-sqlite.
find_program(PERDURE_GZIP gzip REQUIRED)
mark_as_advanced(PERDURE_GZIP)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME perdure)
set(CPACK_PACKAGE_VENDOR "The Perdure authors")
set(CPACK_PACKAGE_CONTACT "The Perdure authors")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL runtime development tools sqlite)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# perdure_deb(<component> <package> <section> <summary> <description> [<dependency>...])
function(perdure_deb component package section summary description)
  string(TOUPPER ${component} upper)
  list(JOIN ARGN ", " depends)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/${package})
  install(FILES ${copyright} DESTINATION ${documents} COMPONENT ${component} RENAME copyright)
  perdure_compressed(CHANGELOG.md ${documents} changelog.gz ${component})
endfunction()

# perdure_compressed(<file> <folder> <name> <component>): Debian wants changelogs and man pages
# compressed, without the time and the name of the file.
function(perdure_compressed file folder name component)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  set(result ${PROJECT_BINARY_DIR}/debian/${name})
  execute_process(COMMAND ${PERDURE_GZIP} -9nc ${file} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_FILE ${result} COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${result} DESTINATION ${folder} COMPONENT ${component})
endfunction()

# The machine-readable copyright file: the licence, each line indented, empty ones a full stop.
set(copyright ${PROJECT_BINARY_DIR}/debian/copyright)
file(READ LICENSE licence)
string(REGEX REPLACE "^[^\n]*\n\nCopyright[^\n]*\n\n" "" licence "${licence}")
string(STRIP "${licence}" licence)
string(REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REPLACE "\n" "\n " licence "${licence}")
file(CONFIGURE OUTPUT ${copyright} @ONLY CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: perdure

Files: *
Copyright: 2026 The Perdure authors
License: BSD-3-Clause
 @licence@
")

set(what "\
Perdure gives ordinary in-memory data structures durable transactions: structs
and pointers live in a file, and what a transaction changes is there as a whole
or not at all, whatever instant the process or the machine stops at.

")
set(runtime libperdure${PERDURE_ABI})
perdure_deb(runtime ${runtime} libs
  "durable transactions for in-memory data structures" "${what}\
This package has the shared library.")
perdure_deb(development libperdure-dev libdevel
  "durable transactions for in-memory data structures (development)" "${what}\
This package has the headers for C++20 and C, the static library, what CMake
and pkg-config need to find them, the crash explorer for tests of programs that
use Perdure, and the engines of the papers that Perdure is compared with."
  "${runtime} (= ${PROJECT_VERSION})" liblz4-dev)
perdure_deb(tools perdure-tools database
  "load, read, check and recover Perdure's files" "${what}\
This package has the command perdure. It loads and exports data, shows what a
file holds, checks it, recovers it after a crash, and measures which engine
suits a program.")
perdure_deb(sqlite perdure-sqlite database
  "SQLite databases in Perdure's files" "${what}\
This package has an extension for SQLite, perdure_vfs. A database that is
opened through it lies in a Perdure file, and a commit of SQLite is one durable
transaction there."
  "libsqlite3-0 (>= 3.31)")
set(CPACK_DEBIAN_SQLITE_PACKAGE_SUGGESTS sqlite3)

set(sections 1 3)  # man pages: of commands, of functions
set(components tools development)
foreach(section component IN ZIP_LISTS sections components)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  foreach(page IN LISTS pages)
    cmake_path(GET page FILENAME name)
    perdure_compressed(${page} ${CMAKE_INSTALL_MANDIR}/man${section} ${name}.gz ${component})
  endforeach()
endforeach()

include(CPack)
