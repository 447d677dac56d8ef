// SPDX-License-Identifier: BSD-3-Clause
//
// Base: a backup of one state of a pool in a store: a list of its chunks, each of which lies there
// once under the hash of its contents. So a second backup writes what has changed only, and states
// that have chunks in common share them. docs/format.md has the layout.
//
//   BASE-1 The list is put last, when all its chunks are durable in the store: a backup that was
//          interrupted is none, and costs only space.
// Thread safety: functions over their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/backup/hash.hpp"
#include "perdure/backup/options.hpp"
#include "perdure/backup/store.hpp"
#include "perdure/base/status.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/state_chunks.hpp"

namespace perdure::backup {

/// One chunk in a base's list.
struct BaseChunk {
  std::uint64_t chunk = 0;  ///< its number in the data region
  Hash hash;                ///< of its chunk_bytes bytes
};

/// A base that was read.
struct Base {
  std::uint64_t id = 0, unix_ns = 0, bytes = 0;
  std::uint32_t mode = 0;  ///< of the pool's file; 0: unknown
  pool::Header header{};   ///< the pool's, as if it had been closed in this state
  std::vector<BaseChunk> chunks;
};

/// What all bases' names begin with.
inline constexpr std::string_view base_prefix = "base-";
[[nodiscard]] std::string base_name(std::uint64_t id);
[[nodiscard]] std::string chunk_name(const Hash& hash);

/// Returns `incompatible` if the store's newest base is another pool's: states are named by their
/// ids alone.
Status check_owner(Store& store, const std::uint8_t (&uuid)[16]);
/// Writes a base of the state to the store, unless it is there. `exists` where there is one of
/// another state with the same id. `header` is that of
/// the pool, closed in this state, `mode` the permission bits of its file; `unix_ns` is when the
/// state was the newest. Errors: the store's.
/// Throws what the state throws, and std::bad_alloc.
Result<BackupReport> write_base(Store& store, const pool::Header& header, std::uint32_t mode,
                                std::uint64_t unix_ns, const pool::PoolState& state,
                                const pool::StateProgress& progress = {});
/// Reads a base's list. `corrupt`, `incompatible`, `not_found`, `io`.
Result<Base> read_base(Store& store, std::uint64_t id);
/// Reads a chunk's chunk_bytes bytes, and checks them.
Result<std::vector<std::byte>> read_chunk(Store& store, const Hash& hash);
/// The ids of all bases, rising.
Result<std::vector<std::uint64_t>> list_bases(Store& store);

}  // namespace perdure::backup
