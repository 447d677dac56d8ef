// SPDX-License-Identifier: BSD-3-Clause
//
// A pool of any engine and any root type, opened for writing or reading, and put in order: nothing
// is mapped, and no program's types are needed, because recovery is a function of the medium alone
// (LAW-5: a crash during it ends in the same state). Not thread-safe.
#pragma once

#include <memory>

#include "perdure/engine/stats.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::tool {

struct PoolArguments;

/// Opens the pool. `with_log`: also one that is replicated, for writing (pool::OpenFile). Throws
/// perdure::error.
std::unique_ptr<pool::OpenPool> open_unmapped(const PoolArguments& arguments, bool read_only,
                                              bool with_log = false);

/// The same for reading, beside the process that writes the pool, where its engine serves readers.
std::unique_ptr<pool::OpenPool> open_unmapped_beside(const PoolArguments& arguments);

/// Does what the next opening for writing would do, and closes the session in order; on a pool that
/// was closed in order, nothing. The header says which engine's recovery runs. Throws
/// perdure::error: `incompatible` if this build does not know the engine.
engine::Recovery put_in_order(pool::OpenPool& file, const PoolArguments& arguments);

}  // namespace perdure::tool
