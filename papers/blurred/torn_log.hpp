// SPDX-License-Identifier: BSD-3-Clause
//
// TornLog: the torn-bit log of one thread (papers: Blurred Persistence, MSST '15, sections III-A
// and IV-B), and its scan after a crash. No pointers to its head or tail: whoever recovers reads it
// from its beginning and finds its end by the torn bits.
//
//   data records of a transaction, one behind the other, then its commit record
//   of an aborted run: an abort record behind it, and one in place of a data record wherever 64
//   blocks would be without. Nothing of the run is flushed, so a crash may leave holes there; the
//   backpointer of the abort record leads over them
//   hole  a block whose torn bit is not the lap's. From one the scan looks 64 blocks ahead for an
//         abort record whose backpointer names the last commit
//         record; without one it is at the log's end
// A lap is one pass over the log. It begins with an abort record that names itself: its torn bits
// say which sense the lap has, its backpointer which lap it is. A position is lap x records +
// number. The next lap begins when home has all of the log durably and X (below) says so, durably.
//
// On the medium: a line of control, then the records. Control: the epoch whose log it is: a log of
// another session is none; `home`: of this log's transactions home has those up to this id; X: of
// all logs', in the first log. Both zero when a session begins. Words: log/control_word.hpp. Crash
// invariants:
//   T1 a transaction's records, and the abort records before them, are durable when commit()
//      returns: one fence.
//   T2 all blocks have one torn bit, durably, before a lap of the other sense begins: holes and the
//      unused rest are filled first.
//   T3 a lap's beginning is durable before any other of its records may be.
//   T4 an aborted record gives way to an abort record by a store to its data block, then one to its
//      metadata block; were the other order to reach the medium, a backpointer is not that of the
//      last commit, or the checksum fails, and the block counts as a hole.
//   T5 all blocks are zero, durably, before the epoch is a session's, and after it was closed in
//      order.
// In the first lap the log's bytes are allocated as it comes to them (extent.hpp); before another
// lap all of them are. What is not allocated is zero (T5).
// Thread safety: none of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "papers/blurred/torn_record.hpp"
#include "perdure/base/status.hpp"
#include "perdure/log/control_word.hpp"
#include "perdure/log/extent.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::log {

/// A committed transaction that a scan has found: records [first, last) of the log.
struct TornTransaction {
  std::uint64_t id = 0, first = 0, last = 0;
};

/// Where a log lies, and whose it is.
struct TornPlace {
  std::uint64_t offset = 0, bytes = 0;  ///< in the log range, multiples of 64
  std::uint64_t identity = 0;           ///< bound to pool and log: ring_seed of epoch 0
  std::uint64_t epoch = 0;
  [[nodiscard]] std::uint64_t seed() const noexcept { return identity ^ base::mix(epoch); }
};

struct TornControl {
  bool ours = false;  ///< there is a log of this session
  Status damage;      ///< `corrupt` where no crash leaves what was found (law L10)
  std::uint64_t home = 0, x = 0;
};

struct TornScan {
  Status damage;
  std::uint64_t end = 0;      ///< the first record behind the log's end
  std::uint64_t aborted = 0;  ///< abort records that led on
  std::vector<TornTransaction> transactions;
};

class TornLog {
 public:
  static constexpr std::uint64_t control_bytes = 64, reach = 64;

  TornLog(medium::Medium& medium, const TornPlace& place) noexcept
      : medium_(medium), place_(place), records_(records_of(place)), seed_(place.seed()) {
    extent_.configure(medium, place.offset, place.bytes);
  }

  /// Makes it this session's, empty. `zero`: it is known to be (T5). T3. The control and the first
  /// record are allocated.
  Status format(bool zero);
  /// For a pool that is closed in order: its next opening may take the log for zero without a look.
  Status wipe() noexcept;

  /// Records that one transaction may have at most.
  [[nodiscard]] std::uint64_t capacity() const noexcept { return records_ - 3; }
  /// Whether `n` records, and the one that ends them, find room.
  [[nodiscard]] bool fits(std::uint64_t n) const noexcept {
    return tail_ + n + 2 <= records_ && ready(n);
  }
  /// Whether they would, were they allocated (ALLOC-1): then prepare(n) is what is lacking, and
  /// truncate() would not help.
  [[nodiscard]] bool lacks_blocks(std::uint64_t n) const noexcept {
    return tail_ + n + 2 <= records_ && !ready(n);
  }
  /// Allocates what `n` records need, and the one that ends them; `full` where the disk is. No
  /// transaction is in progress.
  Status prepare(std::uint64_t n) { return extent_.extend(bytes_to(tail_ + n + 2)); }
  /// Allocates all of the log: before truncate().
  Status prepare_all() { return extent_.extend(place_.bytes); }
  void prepare_ahead() noexcept { extent_.extend_ahead(bytes_to(tail_)); }
  /// Records of this lap, without those of the transaction in progress. From any thread.
  // pairs with nothing: a count
  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool sense() const noexcept { return sense_of(lap_); }
  [[nodiscard]] static bool sense_of(std::uint64_t lap) noexcept { return (lap & 1) == 0; }
  /// The newest transaction in this lap, 0: none.
  [[nodiscard]] std::uint64_t last_id() const noexcept { return last_id_; }

  /// A record of the transaction in progress; it fits. Its number. A store: durable with the
  /// commit.
  std::uint64_t append(const TornRecord& record) noexcept {
    sum_.add(record);
    medium_.store(at(tail_), &record, TornRecord::bytes);
    return tail_++;
  }
  /// The same for all of a transaction's records, which it does not keep in the log meanwhile.
  /// `streamed`: past the cache, as far as they fill lines.
  void append_all(const std::vector<TornRecord>& records, bool streamed) noexcept;
  [[nodiscard]] const TornRecord& record(std::uint64_t number) const noexcept {
    return *reinterpret_cast<const TornRecord*>(medium_.at(at(number)));
  }
  /// Records of the last transaction that committed: [first, second).
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> committed() const noexcept {
    return committed_;
  }
  /// Records of the transaction in progress: [first, second).
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> run() const noexcept {
    return {run_, tail_};
  }

  /// T1: the records appended since the last commit or abort are a committed transaction, durably.
  /// A flush and a fence.
  Status commit(std::uint64_t id) noexcept;
  /// They are none. Flushes nothing.
  void abort() noexcept;
  /// Home has this log's transactions up to `id`, durably. A fence.
  Status note_home(std::uint64_t id) noexcept { return control_word(home_word, id); }
  /// Home has all logs' transactions up to `x`, durably. Of the first log. A fence.
  Status note_x(std::uint64_t x) noexcept { return control_word(x_word, x); }
  /// The next lap: note_home() or note_x() covers all of this one, no transaction is in progress,
  /// prepare_all() has succeeded. Two fences.
  Status truncate() noexcept;

  /// After a crash: what its control says.
  static TornControl control(const medium::Medium& medium, const TornPlace& place);
  /// What a log of this session has. `covered`: home is known to have all transactions up to this
  /// id.
  static TornScan scan(const medium::Medium& medium, const TornPlace& place, std::uint64_t covered);
  /// D4 (log/redo.hpp): starts the write-back of what a scan has gone by.
  static void flush_scanned(medium::Medium& medium, const TornPlace& place,
                            const TornScan& scan) noexcept {
    medium.flush(place.offset, control_bytes + scan.end * TornRecord::bytes);
  }
  [[nodiscard]] static const TornRecord& record_at(const medium::Medium& medium,
                                                   const TornPlace& place,
                                                   std::uint64_t number) noexcept {
    return *reinterpret_cast<const TornRecord*>(
        medium.at(place.offset + control_bytes + number * TornRecord::bytes));
  }
  /// Of a lap.
  [[nodiscard]] static std::uint64_t records_of(const TornPlace& place) noexcept {
    return (place.bytes - control_bytes) / TornRecord::bytes;
  }

 private:
  static constexpr std::uint64_t epoch_word = 0, home_word = 8, x_word = 16;
  [[nodiscard]] static TornRecord commit_record(const TornSum& sum, std::uint64_t id,
                                                std::uint64_t position, std::uint64_t last_commit,
                                                bool sense) noexcept;
  [[nodiscard]] static TornRecord abort_record(std::uint64_t seed, std::uint64_t position,
                                               std::uint64_t backpointer, bool sense) noexcept;

  [[nodiscard]] std::uint64_t at(std::uint64_t number) const noexcept {
    return place_.offset + control_bytes + number * TornRecord::bytes;
  }
  /// Bytes of the log up to record `number`.
  [[nodiscard]] static constexpr std::uint64_t bytes_to(std::uint64_t number) noexcept {
    return control_bytes + number * TornRecord::bytes;
  }
  [[nodiscard]] bool ready(std::uint64_t n) const noexcept {
    return extent_.ready(bytes_to(tail_ + n + 2));
  }
  [[nodiscard]] std::uint64_t position(std::uint64_t number) const noexcept {
    return lap_ * records_ + number;
  }
  void put(std::uint64_t number, const TornRecord& record) noexcept {
    medium_.store(at(number), &record, TornRecord::bytes);
  }
  void flush(std::uint64_t first, std::uint64_t last) noexcept {
    if (first < last) medium_.flush(at(first), (last - first) * TornRecord::bytes);
  }
  /// The same record in [first, last), past the cache where it fills lines.
  void fill(std::uint64_t first, std::uint64_t last, const TornRecord& record) noexcept;
  void zero() noexcept;
  void start_word(std::uint64_t word, std::uint64_t value) noexcept;
  Status control_word(std::uint64_t word, std::uint64_t value) noexcept;
  void begin_lap() noexcept;
  void begin_run() noexcept {
    run_ = streamed_first_ = streamed_last_ = tail_;
    sum_ = TornSum(seed_, position(tail_));
    used_.store(tail_, std::memory_order_relaxed);
  }

  medium::Medium& medium_;
  const TornPlace place_;
  const std::uint64_t records_, seed_;
  LogExtent extent_;
  std::atomic<std::uint64_t> used_{1};
  std::uint64_t lap_ = 0, tail_ = 1, run_ = 1, last_commit_ = 0, last_id_ = 0;
  std::uint64_t streamed_first_ = 1, streamed_last_ = 1;  // of the run: what needs no flush
  // abort records not flushed; runs that are not durable
  bool aborts_since_commit_ = false, aborts_in_lap_ = false;
  std::pair<std::uint64_t, std::uint64_t> committed_{0, 0};
  TornSum sum_{0, 0};
};

}  // namespace perdure::log
