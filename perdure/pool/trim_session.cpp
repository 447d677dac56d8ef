// SPDX-License-Identifier: BSD-3-Clause
//
// OpenPool::give_back: gives the blocks of free chunks back to the file system, in a session. See
// open_pool.hpp; engine/trim.hpp has the invariants.
#include <cstring>

#include "perdure/pool/features.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {

Result<std::uint64_t> OpenPool::give_back(const std::vector<ChunkRange>& runs) {
  // TRIM-3: the pool gets the feature before the first hole, so that programs that do not know
  // holes refuse it.
  if (Status s = require_feature(Feature::small_logs); !s.ok()) return s;
  // CHECKSUM-4: durable by flush_all().
  if (PageChecksums::has(header())) {
    PageChecksums sums(*medium_, header());
    for (const ChunkRange& run : runs) sums.forget(run.first, run.count);
  }
  // After this, lines that an engine has stored and flushed are clean. So no later flush_all()
  // touches a page of a hole.
  if (Status s = medium_->flush_all(); !s.ok()) return s;
  std::uint64_t bytes = 0;
  Status failed;
  // READER-2: a reader at an earlier state may need what lies in these chunks, and no record says
  // that it goes. Pairs with the reader's acquire of the sequence, behind its load of the data.
  struct Changing {
    std::atomic<std::uint64_t>* sequence;
    explicit Changing(ReaderWords* words) : sequence(words ? &words->sequence : nullptr) {
      // mutant: trim-tells-readers
      if (sequence != nullptr) sequence->fetch_add(1, std::memory_order_seq_cst);
    }
    ~Changing() {
      if (sequence != nullptr) sequence->fetch_add(1, std::memory_order_release);
    }
  } const changing(kept_);
  for (const ChunkRange& run : runs) {
    const std::uint64_t offset = run.first * chunk_bytes, n = run.count * chunk_bytes;
    const std::lock_guard guard(grow_mutex_);
    const auto given = medium_->give_back(medium_->log_bytes() + offset, n);
    if (given.ok())
      bytes += *given;
    else
      failed = given.status();  // a part of the run may be a hole
    // A page of the mapping that was stored to is a copy. Dropping the copy makes the data region's
    // zeros visible: copy and data region may differ only where a dirty-line mark says so.
    if (policy_ == ViewPolicy::shadow && !medium_->drop_copies(view_ + offset, n))
      std::memset(view_ + offset, 0, n);
    if (!failed.ok()) break;
  }
  // TRIM-4: the holes must be durable before a transaction stores there again. Otherwise a crash
  // could leave zeros in place of what it stored. If a run failed, the holes of the runs before it
  // are made durable here, too.
  if (Status s = medium_->flush_all(); !s.ok()) return s;
  if (!failed.ok()) return failed;
  return bytes;
}

}  // namespace perdure::pool
