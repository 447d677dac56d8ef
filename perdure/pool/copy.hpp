// SPDX-License-Identifier: BSD-3-Clause
//
// copy_pool: writes one state of an open pool as a pool file of its own, while transactions change
// the pool (Snapshot::copy_to).
//
// BACKUP-1 The file gets its name when it is whole and durable (CREATE-1): it is a pool that was
//          closed cleanly with exactly the state's blocks, whose words are the state's. Its header
//          has the state's id and a uuid of its own.
// Thread safety: a function over its arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::pool {

/// A state of a pool that does not change.
struct PoolState {
  std::uint64_t id = 0;        ///< every transaction up to it is in the state, and no other
  std::vector<HeapOp> blocks;  ///< that allocate all that are allocated, by rising offset
  /// Copies words of the data region, n bytes, a multiple of 8. May throw.
  std::function<void(void* to, std::uint64_t offset, std::uint64_t n)> read;
  /// Throws if what was read may be lost. Called when all has been read.
  std::function<void()> must_be_sound;
};

/// Makes the pool file `path`, with the log and the limit that `pool` has, and the address at which
/// it is mapped. `progress(done, bytes)` is called for each MiB or so of the blocks, if it is not
/// null. Errors: `exists`, `full`, `io`, `busy` (another process is making it), `incompatible` (the
/// pool has a feature that this build can't write). What `state` and `progress` throw leaves no
/// file. REQUIRES: the thread has a slot.
Status copy_pool(const OpenPool& pool, const std::string& path, const PoolState& state,
                 const std::function<void(std::uint64_t done, std::uint64_t bytes)>& progress = {});

}  // namespace perdure::pool
