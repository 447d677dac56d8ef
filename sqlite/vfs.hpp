// SPDX-License-Identifier: BSD-3-Clause
//
// The VFS "perdure" for SQLite: a database file is a pool. docs/sqlite.md says how it is used.
// Thread safety: SQLite's.
#pragma once

namespace perdure::sqlite {

/// Registers it with the SQLite that this is linked to, or loaded into. Returns SQLite's code.
/// Again: nothing happens.
int register_vfs();

}  // namespace perdure::sqlite
