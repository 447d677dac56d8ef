// SPDX-License-Identifier: BSD-3-Clause
//
// State chunks: the data region of one state of a pool, chunk by chunk, as it would be if the pool
// had been closed in that state: exactly the state's blocks are allocated, and every byte outside
// them that no directory word or bitmap needs is zero. So two states have equal bytes in a chunk
// where they have equal blocks with equal contents.
// Thread safety: functions over their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/pool/directory.hpp"
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

  [[nodiscard]] std::uint64_t bytes() const noexcept;  ///< in its blocks
};

/// The state of a pool that no session has, as it lies on its medium, which the result reads.
/// Errors: `invalid` where it was not closed in order, `corrupt` where the heap contradicts itself.
/// Throws std::bad_alloc.
Result<PoolState> state_at_rest(const OpenPool& pool);

/// Told how far a copy is: bytes of the state's blocks that are copied, and all of them.
using StateProgress = std::function<void(std::uint64_t done, std::uint64_t bytes)>;

/// Calls f(chunk, bytes) for each chunk of the data region that has a block or a directory word,
/// once: chunks with blocks by rising number, then those with directory words. `bytes` points to
/// chunk_bytes bytes. Returns the first failure of f, at once; throws what f and the state throw,
/// and std::bad_alloc. Memory: a few chunks, and those that hold directory words.
Status each_chunk(const PoolState& state, const Directory& directory,
                  const std::function<Status(std::uint64_t chunk, const std::byte* bytes)>& f,
                  const StateProgress& progress = {});

}  // namespace perdure::pool
