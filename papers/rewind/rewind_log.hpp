// SPDX-License-Identifier: BSD-3-Clause
//
// RewindLog: the log of one REWIND transaction manager, in one layer or two (papers: REWIND,
// sections 3 and 4.2): records in a part of the log range, appended, walked backwards and forwards,
// removed one by one.
//   1 layer   A PointerLog of the records. A record is found by walking.
//   2 layers  An AtomicAvlTree of the records by LSN, over a PointerLog of the tree's own
//             operations.
//
// On the medium: a line with the list's anchor (six words), the tree's root, and a stamp; then the
// arena. The stamp is a control word (log/control_word.hpp), bound to pool and log, whose value is
// the epoch: a log of an earlier session does not count. All other words of the structure are bound
// to the epoch too. In a log of the first form the words are bare, and the stamp is the seed.
// Crash invariant:
// REWINDLOG-1 The anchor is empty, durably, before the stamp says that it is this session's.
// Lines and buckets are allocated as they are first needed (ALLOC-1): fits() counts those that are
// allocated, extend() allocates more.
// Thread safety: none of its own except mutex(): callers hold it, briefly to append, throughout a
// walk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "papers/names.hpp"
#include "papers/rewind/aavlt.hpp"
#include "papers/rewind/arena.hpp"
#include "papers/rewind/aries_record.hpp"
#include "papers/rewind/nvm.hpp"
#include "papers/rewind/pointer_log.hpp"

namespace perdure::papers::rewind {

enum class LogVersion : std::uint8_t { simple, optimized, batch };

struct RewindShape {
  unsigned layers = 1;
  LogVersion version = LogVersion::optimized;
  std::uint64_t group = 8;             ///< batch: records that share a fence
  std::uint64_t bucket_cells = 1'000;  ///< at most: less in a small log
};

/// Where a log lies, and which pool and session it belongs to.
struct RewindPlace {
  std::uint64_t offset = 0, bytes = 0;  ///< in the log range, multiples of 64
  std::uint64_t seed = 0;               ///< ring_seed of pool, epoch and this log's number
  std::uint64_t identity = 0;           ///< the same for epoch 0
  std::uint64_t epoch = 0;
  /// The form of the stamp that lies there. A session writes the checked form.
  LogForm form = LogForm::checked;
  bool older = false;  ///< the stamp is that of an earlier session, in the first form
  static constexpr std::uint64_t stamp_word = 56;
};

class RewindLog {
 public:
  using Use = NvmStore::Use;
  /// Throws std::bad_alloc. A rehearsal keeps all its stores to itself, for example what recover()
  /// would do.
  RewindLog(medium::Medium& medium, const RewindPlace& place, const RewindShape& shape,
            Use use = Use::real);

  /// A place in a walk: a record. It is valid until the record is removed, or until compact().
  struct Cursor {
    PointerLog::At at;                    // 1 layer
    std::uint64_t place = 0;              // of the record, in the log range
    const AriesRecord* record = nullptr;  ///< null: the walk is over
    explicit operator bool() const noexcept { return record != nullptr; }
  };

  /// Makes the log this session's, empty. The line of the anchor is allocated.
  Status format();
  /// Recovers after a crash: makes the log whole again and learns what is in it. Returns false if
  /// there is no log of this epoch, and `corrupt` where no crash leaves what it finds: a list that
  /// leads nowhere, a damaged record (LAW-10). What it has learnt is made durable (REDO-4,
  /// log/redo.hpp): a process that was killed may have left its last store visible only; all before
  /// that one were fenced. `rehearsed`: a rehearsal has found that there is a log and that its
  /// records are whole.
  Result<bool> recover(bool rehearsed = false);

  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }
  /// Returns whether `n` more records fit.
  [[nodiscard]] bool fits(std::uint64_t n) const noexcept;
  /// Allocates what a few records need (ALLOC-1), whatever the log holds, before format(). Returns
  /// `full` where the disk is full.
  Status reserve();
  /// Allocates until `n` more records fit, or all of the log is allocated: call fits() afterwards.
  /// Returns `full` where the disk is full; the log is then as it was.
  Status extend(std::uint64_t n);
  /// Returns whether all of it is allocated. Any thread may call it.
  // Relaxed: a hint that pairs with nothing.
  [[nodiscard]] bool whole() const noexcept { return whole_.load(std::memory_order_relaxed); }
  /// Returns how many records fit in the log when it is empty and allocated as a whole.
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  /// Returns the number of records. Any thread may call it.
  // Relaxed: a count that pairs with nothing.
  [[nodiscard]] std::uint64_t records() const noexcept {
    return records_.load(std::memory_order_relaxed);
  }

  /// Writes the record, which must fit. It is in the log when this returns or (1 layer, batch) when
  /// in_log() has reached its number, which is the result.
  std::uint64_t append(const AriesRecord& record) noexcept;
  void persist() noexcept;
  [[nodiscard]] std::uint64_t in_log() const noexcept { return appended_ - pending(); }

  [[nodiscard]] Cursor first() const noexcept;
  [[nodiscard]] Cursor last() const noexcept;
  [[nodiscard]] Cursor next(const Cursor& c) const noexcept;
  [[nodiscard]] Cursor prior(const Cursor& c) const noexcept;
  /// Finds a record by LSN, in 2 layers; otherwise null.
  [[nodiscard]] Cursor find(std::uint64_t lsn) const noexcept;
  /// Removes the record at `c`, which is in the log.
  void remove(const Cursor& c) noexcept;
  /// As remove(), but durable only after settle(); until then a crash may leave any of them. The
  /// mutex is held from the first of them to settle().
  void remove_soon(const Cursor& c) noexcept;
  void settle() noexcept;
  void compact() {
    if (!tree_) pointers_->compact();
  }

  [[nodiscard]] NvmStore& nvm() noexcept { return nvm_; }
  [[nodiscard]] const RewindShape& shape() const noexcept { return shape_; }

 private:
  void count(std::uint64_t n) noexcept {
    records_.store(records_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }  // under the mutex
  static constexpr std::uint64_t root_word = 48, stamp_word = RewindPlace::stamp_word;
  [[nodiscard]] static LogArena make_arena(std::uint64_t offset, std::uint64_t bytes,
                                           const RewindShape& shape, std::uint64_t cells);
  [[nodiscard]] Cursor cursor(PointerLog::At at) const noexcept;
  [[nodiscard]] Cursor cursor(std::uint64_t record) const noexcept;
  [[nodiscard]] std::uint64_t pending() const noexcept { return tree_ ? 0 : pointers_->pending(); }
  void start_arena() noexcept;
  Status ready(std::uint64_t lines, std::uint64_t buckets);
  Status cover();
  void note_whole() noexcept {
    if (arena_.lines_ready() == arena_.lines() && arena_.buckets_ready() == arena_.buckets())
      whole_.store(true, std::memory_order_relaxed);
  }

  [[nodiscard]] Result<bool> is_there() const;
  [[nodiscard]] Status learn_records(bool rehearsed);

  const RewindPlace place_;
  const std::uint64_t control_, seed_;
  const RewindShape shape_;
  const std::uint64_t each_;  // lines that a pointer takes, with what it points to
  std::mutex mutex_;
  NvmStore nvm_;
  LogArena arena_;
  std::unique_ptr<PointerLog> pointers_;
  std::unique_ptr<AtomicAvlTree> tree_;
  static constexpr std::size_t max_removed = 64;
  std::vector<std::uint64_t> removed_;  // lines of records that are removed, not settled
  std::uint64_t capacity_ = 0, appended_ = 0;
  std::atomic<std::uint64_t> records_{0};
  std::atomic<bool> whole_{false};
};

}  // namespace perdure::papers::rewind
