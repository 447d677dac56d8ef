// SPDX-License-Identifier: BSD-3-Clause
//
// PrivateState: the mapping of a follower. It shows the data region of the pool's file, except for
// the pages that records have changed since the follower attached: those are the follower's own
// (the mapping is MAP_PRIVATE), and hold what the records say.
//
//   FOLLOW-1 A page is made private before the data region has anything of the first record that
//            names it. So it holds what the data region had before that record, and the records
//            that are applied to it make it the state of each later one in turn.
//   FOLLOW-3 A private page is given back when the data region has all records that name it, and
//            the state has them, too: both then hold the same words. So memory is bounded by what
//            has changed since the last checkpoints, not by how long the follower is attached.
// Thread safety: one thread at a time prepares and gives back, beside threads that read; apply()
// and attach() when no other thread reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/log/record.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine::follow {

class PrivateState {
 public:
  static constexpr std::uint64_t page_bytes = 4096;

  explicit PrivateState(pool::OpenPool& file) : file_(file) {}
  ~PrivateState();
  PrivateState(const PrivateState&) = delete;
  PrivateState& operator=(const PrivateState&) = delete;

  /// Shows the file as it is: no page is private. Errors: as OpenPool::follow_from.
  Status attach(const pool::Header& header);

  /// Makes the pages private that the record names (FOLLOW-1); `last` is its id. Returns `corrupt`
  /// if it names bytes that the pool does not have, and what the system says where the data region
  /// has grown and can't be mapped.
  Status prepare(const std::uint64_t* payload, std::uint64_t words, std::uint64_t last);
  /// Stores what the record says. `whole`: the pages are in the state of the record before it;
  /// otherwise they may be newer, in parts, as the data region is after a crash, and all records
  /// follow that have made them so. Returns false if it stores to a page that prepare() has not
  /// made private: the state is not right then. `last`: as for prepare().
  [[nodiscard]] bool apply(const std::uint64_t* payload, std::uint64_t words, std::uint64_t last,
                           bool whole);
  /// Gives pages back whose records' ids are at most `up_to` (FOLLOW-3), `most` of them. Returns
  /// whether none is left.
  bool give_back(std::uint64_t up_to, std::uint64_t most) noexcept;

  /// Bytes of the pages that are private. Any thread.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return pages_.load(std::memory_order_relaxed) * page_bytes;
  }

 private:
  class Target;
  void touch(std::uint64_t offset, std::uint64_t bytes, std::uint64_t last);
  Status grow_to(std::uint64_t bytes);

  pool::OpenPool& file_;
  // By page: the id of the last record that names it; 0: it is not private. Address space for the
  // pool's limit, of which the pages that are used take memory.
  std::uint64_t* last_ = nullptr;
  std::uint64_t last_bytes_ = 0;
  std::vector<std::uint64_t> private_;  // pages
  std::atomic<std::uint64_t> pages_{0};
};

}  // namespace perdure::engine::follow
