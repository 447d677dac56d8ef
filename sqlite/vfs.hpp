// SPDX-License-Identifier: BSD-3-Clause
//
// The VFS "perdure" for SQLite: a database file is a pool. docs/sqlite.md says how to use it.
// Thread safety: that of SQLite.
#pragma once

namespace perdure::sqlite {

/// Registers the VFS with the SQLite that this code is linked to, or loaded into. Returns SQLite's
/// code. A second call does nothing.
int register_vfs();

}  // namespace perdure::sqlite
