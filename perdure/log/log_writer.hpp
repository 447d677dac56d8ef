// SPDX-License-Identifier: BSD-3-Clause
//
// LogWriter: the group committer of a pipelined pool. It takes committed transactions from the
// threads' volatile logs in id order, writes them as one record to the pool's one ring, and says up
// to which id every transaction is durable.
//
// Ids are dense, so "in id order" needs no coordination: the next id is at the front of exactly one
// volatile log, or it is not there yet. Any thread that waits for durability may run a step (the
// first waiter writes for all that are waiting: one sync, many commits), and so may a background
// thread. Recovery replays the ring until it ends.
//   LOGWRITER-1  durable() rises only after the record's fence.
//   LOGWRITER-2  A record holds consecutive ids, and follows the record before it.
//   LOGWRITER-3  A commit reserves its bytes in the ring before it draws its id, so a step never
//                lacks log space. Hence a checkpoint that waits for durability (its lines may hold
//                newer values than the ring) can always be served, and a full ring cannot block the
//                two on each other.
// An engine that gathers transactions in another way (papers/dudetm/persister.hpp) overrides the
// protected functions; they are called once per step or per record, never per transaction.
// Source: DudeTM (ASPLOS '17) 3.3, there "Persist"; group commit (DeWitt et al., SIGMOD '84).
// Thread safety: all calls but configure.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>

#include "perdure/base/thread_slot.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/log/volatile_log.hpp"

namespace perdure::log {

class LogWriter {
 public:
  enum class Outcome : std::uint8_t {
    busy,      ///< another step is in progress
    nothing,   ///< no transaction is next (or the medium has failed)
    gathered,  ///< transactions joined a group that is not full: nothing was written
    wrote      ///< a record was made durable
  };

  LogWriter() = default;
  virtual ~LogWriter() = default;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Before any thread. `unit`: records are padded to a multiple of this many bytes.
  void configure(Ring& ring, std::uint64_t last_id, std::uint64_t max_group_bytes,
                 std::size_t unit);
  /// Registers a thread's log.
  void add(int slot, VolatileLog& log) noexcept;

  /// LOGWRITER-3: promises log space for a transaction of n payload words. False: the ring is too
  /// full; nothing was promised.
  [[nodiscard]] bool reserve(std::uint64_t words) noexcept {
    const std::uint64_t n = bytes_for(words);
    // pairs with write's subtraction, after tail moved
    const std::uint64_t before = outstanding_.fetch_add(n, std::memory_order_acq_rel);
    if (ring_->fits(before + n) && ring_->ready(before + n)) return true;
    outstanding_.fetch_sub(n, std::memory_order_relaxed);
    return false;
  }
  /// Takes back a promise: the commit failed before it drew its id.
  void unreserve(std::uint64_t words) noexcept {
    outstanding_.fetch_sub(bytes_for(words), std::memory_order_relaxed);
  }
  /// After reserve() was refused: was it because the log's next bytes are not allocated?
  [[nodiscard]] bool lacks_blocks(std::uint64_t words) const noexcept {
    return !ring_->ready(outstanding() + bytes_for(words));
  }
  /// Between transactions: allocates them. `full` where the disk is; nothing has changed then.
  Status prepare(std::uint64_t words) { return ring_->prepare(outstanding() + bytes_for(words)); }
  /// The bytes of the ring that a transaction of n payload words takes at most: alone in a record,
  /// with an end mark.
  [[nodiscard]] std::uint64_t bytes_for(std::uint64_t words) const noexcept {
    return ((words + header_words + 2) * 8 + unit_ - 1) / unit_ * unit_;
  }
  /// Bytes promised and not yet written.
  [[nodiscard]] std::uint64_t outstanding() const noexcept {
    return outstanding_.load(std::memory_order_relaxed);
  }

  /// Every transaction with an id <= this is durable.
  // pairs with write's release
  [[nodiscard]] std::uint64_t durable() const noexcept {
    return durable_.load(std::memory_order_acquire);
  }

  /// durable() is stored there, too, when it rises; readers in other processes look at it. Call it
  /// before the first transaction. `to` outlives this object.
  void tell_durable(std::atomic<std::uint64_t>& to) noexcept { told_ = &to; }

  /// Writes what has been committed as one record. Waits for the medium alone.
  Outcome step() { return step_unless(false, false); }
  /// Returns when durable() >= id (running steps as needed), or when the medium has failed.
  Status wait(std::uint64_t id);
  [[nodiscard]] Status status() const;

  /// Records written.
  [[nodiscard]] std::uint64_t groups() const noexcept {
    return groups_.load(std::memory_order_relaxed);
  }
  /// Transactions written, as ids: the newest in a durable record.
  // pairs with write's release
  [[nodiscard]] std::uint64_t recorded() const noexcept {
    return recorded_.load(std::memory_order_acquire);
  }
  /// Bytes of payload written.
  [[nodiscard]] std::uint64_t bytes_written() const noexcept {
    return written_.load(std::memory_order_relaxed);
  }

 protected:
  /// A step, under its lock: takes note of what the volatile logs hold; what comes later is the
  /// next step's.
  virtual void look() noexcept;
  /// Moves consecutive transactions from the volatile logs to writer_. Returns whether the record
  /// can be no longer.
  virtual bool gather();
  /// Whether what is gathered is written now. `full`: gather() said so. `may_wait`: no thread waits
  /// for it.
  [[nodiscard]] virtual bool due(bool /*full*/, bool /*may_wait*/) const noexcept { return true; }
  /// Makes what is gathered durable, as one record that ends with `last`. May throw std::bad_alloc.
  virtual Status append(std::uint64_t last);
  /// The id up to which every transaction is durable once those up to number `last` are.
  [[nodiscard]] virtual std::uint64_t durable_with(std::uint64_t last) const noexcept {
    return last;
  }
  /// The end of a step.
  virtual void stepped() noexcept {}

  /// `may_wait` is due()'s. `for_cohort`: before it looks, it waits for those that shared the last
  /// records (wait_for_cohort).
  Outcome step_unless(bool may_wait, bool for_cohort);
  /// gather(), with `next(item)` -> the volatile log at whose front the next transaction is, or
  /// null, and `take(log, item)`.
  template <class Next, class Take>
  bool gather_with(Next&& next, Take&& take) {
    writer_.reset();
    for (;;) {
      VolatileLog::Item item;
      VolatileLog* const log = next(item);
      if (log == nullptr) return false;
      const std::uint64_t size = (writer_.payload_words() + item.words + 2 + header_words) * 8;
      if (gathered_ != 0 && (size > max_group_ || size > writer_.max_bytes())) return true;
      // one of the largest size stands alone, without its mark
      const bool marked = size <= writer_.max_bytes();
      try {
        writer_.room(item.words + (marked ? 2 : 0));
      } catch (const std::bad_alloc&) {
        if (gathered_ == 0) out_of_memory();
        return true;
      }
      writer_.entries(item.payload, item.words);
      if (marked) writer_.end_of(recorded() + gathered_ + 1);
      take(*log, item);
    }
  }
  /// The volatile log whose front is transaction `id`, or null.
  [[gnu::always_inline]] VolatileLog* log_of(std::uint64_t id, VolatileLog::Item& item) noexcept {
    const int n = used_logs_.load(std::memory_order_acquire);  // pairs with add
    for (int i = 0; i < n; ++i) {
      // The log that had the last one is tried first: a busy thread has runs of ids.
      const int at = (last_log_ + i) % n;
      // pairs with add
      VolatileLog* const log = logs_[static_cast<std::size_t>(at)].load(std::memory_order_acquire);
      if (log == nullptr) continue;
      item = log->front_seen();
      if (item.id != id) continue;
      last_log_ = at;
      return log;
    }
    return nullptr;
  }
  void take(VolatileLog& log, const VolatileLog::Item& item) noexcept {
    gathered_bytes_ += bytes_for(item.words);
    if (&log != last_taken_) {
      last_taken_ = &log;
      ++turns_;
    }
    log.pop(item);
    ++gathered_;
  }
  void out_of_memory();
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  Ring* ring_ = nullptr;
  std::uint64_t unit_ = 64;
  std::uint64_t gathered_bytes_ = 0;  ///< promises of the transactions gathered
  std::uint64_t gathered_ = 0;        ///< how many: numbers recorded() + 1 and those that follow
  RecordWriter writer_;
  std::atomic<int> used_logs_{0};
  std::array<std::atomic<VolatileLog*>, base::max_threads> logs_{};
  alignas(128) std::atomic<std::uint64_t> outstanding_{0};
  alignas(128) std::atomic<std::uint64_t> durable_{0};
  std::atomic<std::uint64_t> written_{0};

 private:
  void fail(const Status& status);
  Status write();
  void wait_for_cohort() noexcept;

  std::mutex stepping_;
  mutable std::mutex failure_;
  Status status_;
  std::atomic<bool> failed_{false};
  std::uint64_t max_group_ = 0;
  int last_log_ = 0;
  // Used under stepping_. Of the record that is gathered: the log of its last transaction, and how
  // often that changed.
  const VolatileLog* last_taken_ = nullptr;
  unsigned turns_ = 0;
  // Of the last two records: the bytes promised for their transactions, and whether one of them had
  // transactions of several threads.
  std::uint64_t last_bytes_[2] = {};
  bool had_company_[2] = {};
  std::atomic<std::uint64_t>* told_ = nullptr;
  std::atomic<std::uint64_t> recorded_{0};
  std::atomic<std::uint32_t> steps_{0};  ///< what waiters sleep on
  std::atomic<int> sleepers_{0};
  std::atomic<std::uint64_t> groups_{0};
};

}  // namespace perdure::log
