// SPDX-License-Identifier: BSD-3-Clause
//
// BPPM (Lu, Shu, Sun, "Blurred Persistence in Transactional Persistent Memory", MSST '15), and the
// systems that the paper compares it with. Transactions write back (tm/write_set.hpp): their new
// values go to a torn-bit log, one per thread (papers/blurred/torn_log.hpp), then to the data
// region.
//
//   Execution in Log (XIL)  The write set is the log: new values are stored there at once, and read
//                           from there. Otherwise it is a private buffer, which the commit copies
//                           to the log.
//   log writes              Stores and flushes; MNE: past the cache, as far as lines are full, or
//                           all of it; BASE as it is drawn: in the order of TORN-6.
//   data region             SYNC: flushed and fenced by each commit, which then notes that in the
//                           log's control (`home`); or, `late`, when the log is full. ASYNC: by a
//                           thread (truncator.hpp). BULK (Volatile Checkpoint with Bulk
//                           Persistence): everything at once (flush_all), but only when the log is
//                           full.
// A Mode is one of these; one type serves all modes that have their write set in the same place.
// The pool's header says which mode it has. commit(): one fence for the log, within the TM's
// commit: nothing that the transaction has written is visible before.
// Invariants:
//   BPPM-1 The data region is stored to after the transaction is durable in its log, and before its
//          locks are released.
//   BPPM-2 A log's generation ends only when the data region durably holds all of its transactions
//          and the checkpoint id X (SYNC: the log's `home`, unless late) says so. X covers the
//          transactions of all logs up to it; recovery skips those. Otherwise an older value, still
//          in another thread's log, would overwrite a newer one whose log has been truncated.
// The TM isolates.
// Thread safety: any thread may call the engine; a Transaction belongs to its thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "papers/blurred/torn_log.hpp"
#include "papers/blurred/truncator.hpp"
#include "papers/names.hpp"
#include "perdure/engine/bulk_persistence.hpp"
#include "perdure/engine/data_at_commit.hpp"
#include "perdure/engine/engine_info.hpp"
#include "perdure/engine/thread_logs.hpp"
#include "perdure/engine/transaction.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/tm/tm.hpp"
#include "perdure/tm/write_set.hpp"

namespace perdure::papers::blurred {

/// When the data region is durable, and the log may be truncated. `late`: as sync, but a commit
/// does not say so in the log's control.
enum class Truncation : std::uint8_t { sync, late, async, bulk };

/// What is chosen at run time; the type decides about Execution in Log.
struct Mode {
  std::string_view name;  ///< as in the pool's header
  TornWriting log;
  Truncation truncation;
};
inline constexpr std::array<Mode, 9> modes = {
    {{"bppm", TornWriting::flushed, Truncation::bulk},
     {"bppm-xil", TornWriting::flushed, Truncation::sync},
     {"bppm-xil-late", TornWriting::flushed, Truncation::late},
     {"redo-vcbp", TornWriting::flushed, Truncation::bulk},
     {"redo-mne-sync", TornWriting::filled, Truncation::sync},
     {"redo-mne-async", TornWriting::filled, Truncation::async},
     {"redo-mne-past", TornWriting::past, Truncation::sync},
     {"redo-base-ordered", TornWriting::ordered, Truncation::sync},
     {"redo-base", TornWriting::flushed, Truncation::sync}}};
inline constexpr std::array<InstanceName, 3> names_in_log = {
    {{"bppm", "bppm"}, {"bppm-xil", "bppm-xil"}, {"bppm-xil-late", "bppm-xil-late"}}};
inline constexpr std::array<InstanceName, 2> names_in_log_none = {
    {{"bppm/none", "bppm"}, {"bppm-xil/none", "bppm-xil"}}};
inline constexpr std::array<InstanceName, 6> names_private = {
    {{"redo-vcbp", "redo-vcbp"},
     {"redo-mne-sync", "redo-mne-sync"},
     {"redo-mne-async", "redo-mne-async"},
     {"redo-mne-past", "redo-mne-past"},
     {"redo-base", "redo-base"},
     {"redo-base-ordered", "redo-base-ordered"}}};
inline constexpr std::array<InstanceName, 4> names_private_none = {
    {{"redo-vcbp/none", "redo-vcbp"},
     {"redo-mne-sync/none", "redo-mne-sync"},
     {"redo-mne-async/none", "redo-mne-async"},
     {"redo-base/none", "redo-base"}}};

/// Returns the mode that a header's engine name stands for.
[[nodiscard]] const Mode& mode_of(const pool::Header& header) noexcept;
/// Returns where a pool's log `ring` lies.
[[nodiscard]] TornPlace place_of(const pool::Header& header, std::uint32_t ring) noexcept;
/// The paper's three steps of recovery (section III-C), for all modes.
Status recover(pool::OpenPool& file, Recovery& report);

/// XIL: a transaction's new values lie in the log.
struct LogWrites {
  TornLog* log;
  std::uint64_t add(std::uint64_t address, std::uint64_t value) noexcept {
    return log->append(TornRecord::make(TornKind::word, address, value, log->sense()));
  }
  // The value is not replaced in place: the commit record may be durable before a second store to
  // the block is, and no torn bit would show that.
  std::uint64_t replace(std::uint64_t, std::uint64_t address, std::uint64_t value) noexcept {
    return add(address, value);
  }
  [[nodiscard]] std::uint64_t value(std::uint64_t place) const noexcept {
    return log->record(place).value();
  }
};

template <class Tm, class Writes>
class Bppm : public DataAtCommit<Tm> {
  using Base = DataAtCommit<Tm>;

 public:
  static constexpr bool ring_records = false;
  static constexpr bool in_log = std::is_same_v<Writes, LogWrites>;

  class Transaction;

  static pool::Identity identity(const Config& config) {
    pool::Identity who = Base::a_log_each(config);
    who.min_ring = 16384;
    return who;
  }
  static Status recover(pool::OpenPool& file, Recovery& report) {
    return blurred::recover(file, report);
  }

  Bppm(pool::OpenPool& file, const Config& config, const Recovery& recovery);
  ~Bppm();

  Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  Status checkpoint();
  Status close();
  Stats stats();
  void wait_for_log_space(Transaction& transaction, LogSpace needed);

 private:
  Status checkpoint_up_to(std::uint64_t id);

  using Base::core_, Base::heap_bits_, Base::tm_;
  const Mode mode_;
  ThreadLogs<TornLog> logs_;  // a turn is held while the log is truncated, too
  BulkPersistence bulk_;
  std::atomic<std::uint64_t> generations_{0};
  std::unique_ptr<Truncator> truncator_;
  Transactions<Transaction> transactions_;
};

template <class Tm, class Writes>
class Bppm<Tm, Writes>::Transaction : public TransactionBase<Tm> {
  using Base = TransactionBase<Tm>;
  using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::offset_of, Base::ops_,
      Base::row_, Base::shows_, Base::tm_, Base::view_;

 public:
  Transaction(Bppm& engine, int slot);

  // An update's reads must check its write set.
  [[nodiscard]] bool direct() const noexcept { return this->in_view() && tm_.direct(); }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
    std::uint64_t value = 0;
    if (!written_.empty() && written_.find(offset_of(a), value)) return value;
    return tm_.read(a);
  }
  void write(std::uint64_t* a, std::uint64_t v) {
    tm_.own(a);
    room(1);
    written_.put(offset_of(a), v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) write(a + i, src[i]);
  }
  std::byte* alloc(std::uint64_t bytes) {
    return view_ + ops_.allocate(heap_, bytes, tm_, view_, directory_).offset;
  }
  void free(void* p) { ops_.free(heap_, offset_of(p), tm_); }
  std::uint64_t commit(Durability durability);
  void rollback() noexcept;

 private:
  friend class Bppm;
  /// Checks that the log has space for n more records; throws LogFull, error(too_big).
  void room(std::uint64_t n) {
    if constexpr (in_log) {
      take_log();
      if (__builtin_expect(!log_->fits(n) || core_.state() != 0, 0)) no_log_space(n);
    }
  }
  void take_log() {
    if (__builtin_expect(!use_.begin(), 1)) return;
    log_ = &use_.log();
    if constexpr (in_log) written_.writes().log = log_;
  }
  void no_log_space(std::uint64_t n);
  void prepare();
  Status persist(std::uint64_t id);
  Status check_point(std::uint64_t id);
  void end() noexcept;

  Bppm& engine_;
  typename ThreadLogs<TornLog>::Use use_;
  TornLog* log_;  // of use_
  tm::WriteSet<Writes> written_;
  // The records that the commit appends to the log: all of them, or (XIL) heap ops.
  std::vector<TornRecord> records_;
  Truncator::Node node_;  // ASYNC: this transaction's lines
  // ASYNC: its heap ops change more lines than the writer holds.
  bool huge_ = false;
  // It has thrown LogFull with this many bytes: if a caller swallowed that, commit throws it
  // again.
  std::uint64_t needed_ = 0;
  log::DataWriter data_writer_;
};

}  // namespace perdure::papers::blurred
