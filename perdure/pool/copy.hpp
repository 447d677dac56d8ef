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

#include "perdure/base/status.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/state_chunks.hpp"

namespace perdure::pool {

/// Makes the pool file `path`, with the log and the limit that `pool` has, and the address at which
/// it is mapped. `progress(done, bytes)` is called for each MiB or so of the blocks, if it is not
/// null. Errors: `exists`, `full`, `io`, `busy` (another process is making it), `incompatible` (the
/// pool has a feature that this build can't write). What `state` and `progress` throw leaves no
/// file. REQUIRES: the thread has a slot.
Status copy_pool(const OpenPool& pool, const std::string& path, const PoolState& state,
                 const StateProgress& progress = {});

/// The header of a new pool that is a copy of the one with the header `of`: with a uuid of its own.
/// Errors: `incompatible` (a feature that this build can't write; `path` is for the message), `io`.
Result<Header> header_of_copy(const std::string& path, const Header& of);
/// Of a further copy of the same pool, which is replicated: with its uuid, and these words. It has
/// checksums of pages only where the pool was made with them: other places for them are where
/// another copy may have objects.
Result<Header> header_of_replica(const std::string& path, const Header& of,
                                 const ReplicationWords& words);
/// Whether what a copy with the header `theirs` logs can be applied to one with the header `mine`:
/// places and limits in the data region are the same. Otherwise `incompatible`, with what differs.
[[nodiscard]] Status same_places(const std::string& path, const Header& mine, const Header& theirs);
/// Gives `mine` what its copy's header `theirs` says of the contents: the layout, the names of
/// fields, the root object, and the features that these and log entries need. Returns whether that
/// was something new.
bool adopt_contents(Header& mine, const Header& theirs) noexcept;
/// Makes the pool file `path` with that header. fill(medium) stores the data region; what it has
/// stored is fenced before the header is written. Errors and what is left: as copy_pool. `mode`:
/// OpenFile::mode.
Status create_copy(const std::string& path, const Header& header, std::uint32_t mode,
                   const std::function<Status(medium::Medium& medium)>& fill);

}  // namespace perdure::pool
