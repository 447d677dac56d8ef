// SPDX-License-Identifier: BSD-3-Clause
//
// SQLite's functions, for sources that are compiled twice: into the extension, which calls them
// through the table that SQLite gives it, and into programs that link SQLite
// (PERDURE_SQLITE_LINKED).
#pragma once

#ifdef PERDURE_SQLITE_LINKED
#include <sqlite3.h>
#else
#include <sqlite3ext.h>
extern "C" {
extern const sqlite3_api_routines* sqlite3_api;
}
#endif
