// SPDX-License-Identifier: BSD-3-Clause
//
// OpenPool::give_back: the file system gets the blocks of free chunks back, in a session. See
// open_pool.hpp; engine/trim.hpp has the invariants.
#include <cstring>

#include "perdure/pool/features.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::pool {

Result<std::uint64_t> OpenPool::give_back(const std::vector<ChunkRange>& runs) {
  // TRIM-3: programs that do not know holes refuse the pool before it has one.
  if (Status s = require_feature(Feature::small_logs); !s.ok()) return s;
  // Lines that an engine has stored and flushed are clean after this, so that no later flush of
  // everything touches a page of a hole.
  if (Status s = medium_->flush_all(); !s.ok()) return s;
  std::uint64_t bytes = 0;
  Status failed;
  for (const ChunkRange& run : runs) {
    const std::uint64_t offset = run.first * chunk_bytes, n = run.count * chunk_bytes;
    const std::lock_guard guard(grow_mutex_);
    const auto given = medium_->give_back(medium_->log_bytes() + offset, n);
    if (given.ok())
      bytes += *given;
    else
      failed = given.status();  // a part of the run may be a hole
    // A page of the view that was stored to is a copy; with it the data region's zeros show. The
    // two must not differ where no mark says so.
    if (policy_ == ViewPolicy::shadow && !medium_->drop_copies(view_ + offset, n))
      std::memset(view_ + offset, 0, n);
    if (!failed.ok()) break;
  }
  // TRIM-4: the holes are durable before anything is stored there again. Without that a crash could
  // leave zeros in place of what a later transaction has stored. Where a run failed, this is so for
  // those before it.
  if (Status s = medium_->flush_all(); !s.ok()) return s;
  if (!failed.ok()) return failed;
  return bytes;
}

}  // namespace perdure::pool
