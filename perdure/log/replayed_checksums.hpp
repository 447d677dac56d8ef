// SPDX-License-Identifier: BSD-3-Clause
//
// ReplayedChecksums: keeps the checksums of pages (pool/page_checksums.hpp) while recovery stores
// to the data region (CHECKSUM-2). Where every page is as its checksum says, the terms of the words
// that are replaced are gathered, and no page is read for it. Where a checkpoint or a recovery was
// interrupted, the pages that are stored to are computed anew at the end.
// Thread safety: any thread may call replace(), of words that no other one changes; two words of
// one pair (16 bytes) count as one. All have ended before finish().
#pragma once

#include <cstdint>
#include <cstring>

#include "perdure/log/line_masks.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::log {

class ReplayedChecksums {
 public:
  /// REQUIRES: the header has the feature data checksums. Throws std::bad_alloc.
  ReplayedChecksums(medium::Medium& medium, const pool::Header& header);

  /// Before the first store: CHECKSUM-1. The caller fences.
  void begin() noexcept { sums_.mark(checkpoint_id_); }
  /// The page of this offset counts as stored to, whether it is or not. Of an offset that the data
  /// region does not have, it does nothing.
  void touch(std::uint64_t offset) noexcept;
  /// n words at an offset in the data region, which has them, are about to be replaced by these.
  void replace(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) noexcept;
  /// After the last store: stores the checksums and starts their write-back. The caller fences.
  void finish() noexcept;

 private:
  void note_freed(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) noexcept;

  medium::Medium& medium_;
  const pool::Directory directory_;
  pool::PageChecksums sums_;
  const std::uint64_t checkpoint_id_, pages_;
  const bool anew_;
  LineWords deltas_;   // one for each page; with anew_, none
  LineWords touched_;  // one bit for each page
  LineWords freed_;    // one bit for each chunk: its directory word became 0
};

}  // namespace perdure::log
