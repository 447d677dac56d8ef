// SPDX-License-Identifier: BSD-3-Clause
//
// The entry point that SQLite loads: `.load ./perdure_vfs`, or sqlite3_load_extension(). The VFS
// outlives the connection that has loaded it.
#include "papers/papers.h"
#include "sqlite/sqlite_api.hpp"
#include "sqlite/vfs.hpp"

extern "C" {
SQLITE_EXTENSION_INIT1

__attribute__((visibility("default"))) int sqlite3_perdurevfs_init(
    sqlite3*, char** message, const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api)
  perdure_papers_register();
  const int code = perdure::sqlite::register_vfs();
  if (code != SQLITE_OK && message != nullptr)
    *message = sqlite3_mprintf("perdure: this SQLite has no VFS of the system");
  return code == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : code;
}
}
