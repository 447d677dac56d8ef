// SPDX-License-Identifier: BSD-3-Clause
//
// A pool that one process both writes and follows: a standby (replication/standby.hpp), which
// writes the file and has no mapping of the data for transactions, so that a reader of the same
// process can have it.
// Thread safety: any thread may call it.
#pragma once

namespace perdure::pool {

/// From now on this process may also open the pool for following. `fd`: OpenPool::fd() of one that
/// is open for writing, and whose session has no mapping (ViewPolicy::none).
void let_follow_here(int fd) noexcept;

}  // namespace perdure::pool
