// SPDX-License-Identifier: BSD-3-Clause
//
// ReaderWords: what the process that has a pool open for writing tells the processes that read it
// meanwhile (engine/follow/follower.hpp). They lie in the data region's first page, so whoever can
// read the pool's file can read them, and nothing else has to be shared.
//
// They are stored to the mapped file and never made durable: they say something about processes
// that run now, and after a power cut they may have any value. So a reader believes them only while
// the writer holds the lock that says that it serves readers (FileLock), and nothing that recovery,
// an opening for writing, or a check does depends on them. Pools on a device, and pools on a medium
// of the caller, have none.
//   READER-1 `home_clock` is at least the id of every transaction of which the data region shows an
//            effect. It is raised before the data region changes.
//   READER-2 `sequence` has another value, or is odd, from before the data region changes in a way
//            that the log does not tell (recovery, the steps of an opening, trim) until readers may
//            look at it again.
// Thread safety: atomics; each call of OpenPool that changes them says who may make it.
#pragma once

#include <atomic>
#include <cstdint>

namespace perdure::pool {

/// The words' offset in the data region. The line before it has late_catalog.
inline constexpr std::uint64_t reader_words_offset = 64;

struct ReaderWords {
  /// READER-2. Odd: the data region is changing.
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> home_clock;  ///< READER-1
  /// Pipelined order: every transaction up to this id is durable. Strict order: 0.
  std::atomic<std::uint64_t> durable_id;
  /// The data region has every transaction up to this id.
  std::atomic<std::uint64_t> checkpoint_id;
};
static_assert(sizeof(ReaderWords) <= 64 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace perdure::pool
