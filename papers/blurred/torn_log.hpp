// SPDX-License-Identifier: BSD-3-Clause
//
// TornLog: the torn-bit log of one thread (papers: Blurred Persistence, MSST '15, sections III-A
// and IV-B), and its scan after a crash. It has no pointers to its head or tail: recovery reads it
// from its beginning and finds its end by the torn bits.
//
//   data records  The records of a transaction, one after the other, then its commit record. After
//                 an aborted run there is an abort record, and also one in place of a data record
//                 wherever 64 blocks would otherwise have none. Nothing of the run is flushed, so a
//                 crash may leave holes there; the backpointer of the abort record leads over them.
//   hole          A block whose torn bit is not that of the generation. From a hole the scan
//                 searches 64 blocks ahead for an abort record whose backpointer names the last
//                 commit record; without one it is at the log's end.
// A generation is one pass over the log. It begins with an abort record that
// names itself: its torn bits say which sense the generation has, its backpointer which generation
// it is. A position is generation x records + number. The next generation begins when the data
// region durably holds all of the log and the checkpoint id X (below) says so, durably.
//
// On the medium: a line of control, then the records. Control has four words: the epoch whose log
// it is (a log of another session does not count); `home`: the data region holds this log's
// transactions up to this id; X: it holds those of all logs up to this id, in the first log; in an
// ordered log the tail, the position behind the last commit record. `home` and X are zero when a
// session begins. Words: log/control_word.hpp.
// Crash invariants:
//   TORN-1 A transaction's records, and the abort records before them, are durable when commit()
//          returns: one fence.
//   TORN-2 All blocks have one torn bit, durably, before a generation of the other sense begins:
//          holes and the unused rest are filled first.
//   TORN-3 A generation's beginning is durable before any other of its records may be.
//   TORN-4 An aborted record is replaced by an abort record with a store to its data block, then
//          one to its metadata block. If the other order reaches the medium, a backpointer is not
//          that of the last commit, or the checksum fails, and the block counts as a hole.
//   TORN-5 All blocks are zero, durably, before the epoch is a session's, and after it was closed.
//   TORN-6 In an ordered log a transaction's records are durable before its commit record may be,
//          and that is before the tail leads over it.
// In the first generation the log's bytes are allocated as the tail reaches them (extent.hpp);
// before another generation all of them are. What is not allocated is zero (TORN-5).
// Thread safety: none of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "papers/blurred/torn_record.hpp"
#include "papers/names.hpp"
#include "perdure/base/status.hpp"
#include "perdure/log/control_word.hpp"
#include "perdure/log/extent.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::papers::blurred {

/// A committed transaction that a scan has found: records [first, last) of the log.
struct TornTransaction {
  std::uint64_t id = 0, first = 0, last = 0;
};

/// Where a log lies, and which pool and session it belongs to.
struct TornPlace {
  std::uint64_t offset = 0, bytes = 0;  ///< in the log range, multiples of 64
  std::uint64_t identity = 0;           ///< bound to pool and log: ring_seed of epoch 0
  std::uint64_t epoch = 0;
  [[nodiscard]] std::uint64_t seed() const noexcept { return identity ^ base::mix(epoch); }
};

/// How a log is written.
enum class TornWriting : std::uint8_t {
  flushed,  ///< stores, flushed by the commit
  filled,   ///< past the cache where records fill lines, the rest as above
  past,     ///< all past the cache, as Mnemosyne's movnti does
  ordered   ///< stores, flushed; the commit record behind a fence, then the tail
};

struct TornControl {
  bool ours = false;  ///< there is a log of this session
  Status damage;      ///< `corrupt` where no crash leaves what was found (LAW-10)
  std::uint64_t home = 0, x = 0, tail = 0;
};

struct TornScan {
  Status damage;
  static constexpr std::uint64_t between = ~std::uint64_t{0};
  std::uint64_t generation = 0;  ///< `between`: its beginning is not written yet
  std::uint64_t end = 0;         ///< the first record after the log's end
  std::uint64_t aborted = 0;     ///< abort records that led over holes
  std::vector<TornTransaction> transactions;
};

class TornLog {
 public:
  static constexpr std::uint64_t control_bytes = 64, reach = 64;

  TornLog(medium::Medium& medium, const TornPlace& place,
          TornWriting writing = TornWriting::flushed) noexcept
      : medium_(medium),
        place_(place),
        writing_(writing),
        records_(records_of(place)),
        seed_(place.seed()) {
    extent_.configure(medium, place.offset, place.bytes);
  }

  /// Makes the log this session's, empty. `zero`: it is known to be zero (TORN-5). TORN-3. The
  /// control and the first record are allocated.
  Status format(bool zero);
  /// Called for a pool that is being closed: its next opening may take the log for zero unread.
  Status wipe() noexcept;

  /// Returns how many records one transaction may have at most.
  [[nodiscard]] std::uint64_t capacity() const noexcept { return records_ - 3; }
  /// Returns whether `n` records, and the one that ends them, fit.
  [[nodiscard]] bool fits(std::uint64_t n) const noexcept {
    return tail_ + n + 2 <= records_ && ready(n);
  }
  /// Returns whether they would fit if they were allocated (ALLOC-1): prepare(n) is needed then,
  /// and truncate() would not help.
  [[nodiscard]] bool lacks_blocks(std::uint64_t n) const noexcept {
    return tail_ + n + 2 <= records_ && !ready(n);
  }
  /// Allocates what `n` records need, and the one that ends them. Returns `full` where the disk is
  /// full. No transaction is in progress.
  Status prepare(std::uint64_t n) { return extent_.extend(bytes_to(tail_ + n + 2)); }
  /// Allocates all of the log. Call this before truncate().
  Status prepare_all() { return extent_.extend(place_.bytes); }
  void prepare_ahead() noexcept { extent_.extend_ahead(bytes_to(tail_)); }
  /// Returns the number of records of this generation, without those of the transaction in
  /// progress. Any thread may call it.
  // Relaxed: a count that pairs with nothing.
  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool sense() const noexcept { return sense_of(lap_); }
  [[nodiscard]] static bool sense_of(std::uint64_t generation) noexcept {
    return (generation & 1) == 0;
  }
  /// Returns the newest transaction in this generation; 0: none.
  [[nodiscard]] std::uint64_t last_id() const noexcept { return last_id_; }

  /// Appends a record of the transaction in progress, which must fit. Returns its number. It is a
  /// store: durable with the commit.
  std::uint64_t append(const TornRecord& record) noexcept {
    sum_.add(record);
    medium_.store(at(tail_), &record, TornRecord::bytes);
    return tail_++;
  }
  /// Appends all of a transaction's records at once, for a transaction that keeps them elsewhere
  /// until it commits. Only so can they be written past the cache.
  void append_all(const std::vector<TornRecord>& records) noexcept;
  [[nodiscard]] const TornRecord& record(std::uint64_t number) const noexcept {
    return *reinterpret_cast<const TornRecord*>(medium_.at(at(number)));
  }
  /// Returns the records of the last transaction that committed: [first, second).
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> committed() const noexcept {
    return committed_;
  }
  /// Returns the records of the transaction in progress: [first, second).
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> run() const noexcept {
    return {run_, tail_};
  }

  /// TORN-1: durably makes the records that were appended since the last commit or abort a
  /// committed transaction. It costs a flush and a fence; ordered: three of each.
  Status commit(std::uint64_t id) noexcept;
  /// Aborts the transaction of these records. It flushes nothing.
  void abort() noexcept;
  /// Notes that the data region durably holds this log's transactions up to `id`. It costs a fence.
  Status note_data(std::uint64_t id) noexcept { return control_word(data_word, id); }
  /// Notes the checkpoint id: the data region durably holds all logs' transactions up to `x`.
  /// Called for the first log. It costs a fence.
  Status note_checkpoint_id(std::uint64_t x) noexcept { return control_word(x_word, x); }
  /// Begins the next generation. Preconditions: note_data() or note_checkpoint_id() covers all of
  /// this one, no transaction is in progress, prepare_all() has succeeded. It costs two fences.
  Status truncate() noexcept;

  /// Reads the control after a crash. `ordered`: of such a log.
  static TornControl control(const medium::Medium& medium, const TornPlace& place,
                             bool ordered = false);
  /// Scans a log of this session. `covered`: the data region is known to hold all transactions up
  /// to this id.
  static TornScan scan(const medium::Medium& medium, const TornPlace& place, std::uint64_t covered);
  /// REDO-4 (log/redo.hpp): starts the write-back of what a scan has relied on.
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
  /// Returns the number of records in a generation.
  [[nodiscard]] static std::uint64_t records_of(const TornPlace& place) noexcept {
    return (place.bytes - control_bytes) / TornRecord::bytes;
  }

 private:
  static constexpr std::uint64_t epoch_word = 0, data_word = 8, x_word = 16, tail_word = 24;
  static constexpr std::uint64_t a_line = 64 / TornRecord::bytes;
  [[nodiscard]] static TornRecord commit_record(const TornSum& sum, std::uint64_t id,
                                                std::uint64_t position, std::uint64_t last_commit,
                                                bool sense) noexcept;
  [[nodiscard]] static TornRecord abort_record(std::uint64_t seed, std::uint64_t position,
                                               std::uint64_t backpointer, bool sense) noexcept;

  [[nodiscard]] std::uint64_t at(std::uint64_t number) const noexcept {
    return place_.offset + control_bytes + number * TornRecord::bytes;
  }
  /// Returns the number of bytes of the log up to record `number`.
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
  /// Writes the same record to all of [first, last), past the cache where it fills lines.
  void fill(std::uint64_t first, std::uint64_t last, const TornRecord& record) noexcept;
  void zero() noexcept;
  void start_word(std::uint64_t word, std::uint64_t value) noexcept;
  Status control_word(std::uint64_t word, std::uint64_t value) noexcept;
  void begin_generation() noexcept;
  void append_past(const TornRecord& record) noexcept;
  void stream_line() noexcept;
  void begin_run() noexcept {
    run_ = streamed_first_ = streamed_last_ = tail_;
    sum_ = TornSum(seed_, position(tail_));
    used_.store(tail_, std::memory_order_relaxed);
  }

  medium::Medium& medium_;
  const TornPlace place_;
  const TornWriting writing_;
  const std::uint64_t records_, seed_;
  LogExtent extent_;
  std::atomic<std::uint64_t> used_{1};
  std::uint64_t lap_ = 0, tail_ = 1, run_ = 1, last_commit_ = 0, last_id_ = 0;
  std::uint64_t streamed_first_ = 1, streamed_last_ = 1;  // the part of the run that needs no flush
  // Whether there are abort records that are not flushed; whether there are runs that are not
  // durable.
  bool aborts_since_commit_ = false, aborts_in_generation_ = false;
  std::pair<std::uint64_t, std::uint64_t> committed_{0, 0};
  TornSum sum_{0, 0};
  // `past`: the records of the line that the tail is in. It is written as a whole: a word that is
  // stored again as it is can't be torn.
  std::array<TornRecord, a_line> line_{};
};

}  // namespace perdure::papers::blurred
