// SPDX-License-Identifier: BSD-3-Clause
//
// Shadow, the default engine. Transactions run on a copy of the data region in DRAM (the shadow),
// and their stores are gathered in a redo record, which is made durable in one of two orders
// (engine/redo_engine.hpp). Checkpoints copy the lines that changed from the shadow to the data
// region, beside running transactions (checkpoint.hpp); then the log is truncated.
// Source: the decoupling of DudeTM (ASPLOS '17, section 3) with checkpoints from the shadow instead
// of replay of the log. README.md maps the paper to functions and lists what differs.
// Thread safety: transaction() and what is reached through it: the calling thread; everything else:
// any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "perdure/engine/redo_engine.hpp"
#include "perdure/engine/redo_transaction.hpp"
#include "perdure/engine/shadow/helper.hpp"
#include "perdure/engine/shadow/saver.hpp"
#include "perdure/engine/shadow/writer.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/log/note.hpp"

namespace perdure::engine::shadow {

class Checkpoint;
class ReaderGate;
class Resident;

template <class Tm>
class Shadow : public RedoEngine<Shadow<Tm>, Tm, log::LogWriter> {
  using Base = RedoEngine<Shadow<Tm>, Tm, log::LogWriter>;
  // A checkpoint compares the marks' ids with the durable id, so ids must be dense.
  static_assert(!tm::has_timestamps<Tm>);

 public:
  static constexpr const char* name = "shadow";
  static constexpr bool limits_resident = true;  ///< Config::max_resident
  static constexpr bool serves_readers = true;   ///< pool::ReaderWords
  static constexpr bool keeps_checksums = true;  ///< pool::PageChecksums

  class Transaction;

  static pool::Identity identity(const Config& config);
  static bool limits_shadow(const Config& config) { return config.max_resident != 0; }

  Shadow(pool::OpenPool& file, const Config& config, const Recovery& recovery);
  ~Shadow();

  [[gnu::always_inline]] Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  Status wait(std::uint64_t id);
  Status checkpoint();
  Stats stats();
  /// The pool's snapshots. Without isolation two threads may store to one line, which none owns.
  [[nodiscard]] Snapshots* snapshots() noexcept
    requires(Tm::isolates)
  {
    return snapshots_.get();
  }
  /// The pool's log, for those that read it beside transactions. A backup needs snapshots, too.
  [[nodiscard]] FollowedLog* followed_log() noexcept
    requires(Tm::isolates)
  {
    return &followed_;
  }

  /// Returns when what is needed is likely to be there. The caller's transaction was rolled back
  /// and holds nothing.
  void wait_for_log_space(Transaction& transaction, LogSpace needed);

 private:
  friend Base;
  template <class, class, class>
  friend class engine::RedoTransaction;
  using Base::background_, Base::core_, Base::followed_, Base::strict_, Base::rings_, Base::tm_,
      Base::writer_;

  // Of a transaction's next_slice_: no position of the log.
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  [[nodiscard]] std::uint64_t last_recorded() const noexcept { return tm::last_id<Tm>(tm_); }
  [[nodiscard]] static std::uint64_t unix_ns() noexcept;
  void will_have_notes();
  void slice(Transaction& transaction, bool all, std::uint64_t needed = 0);
  bool step_locked(Transaction& transaction, std::size_t pages);
  bool slice_locked(Transaction& transaction, std::size_t pages);
  void note_pages(Transaction& transaction) noexcept;
  Status finish_checkpoint();
  [[nodiscard]] bool sleeps_at_once() const noexcept { return strict_; }
  bool leaves_to_helper(Transaction& transaction);
  bool help();
  bool follow_log(std::chrono::microseconds nap);
  [[nodiscard]] bool nothing_to_follow() const noexcept {
    return !log_is_half_full() && !above_limit() && !(helper_ && helper_->asked());
  }
  [[nodiscard]] bool persists_in_background() const noexcept {
    return this->async_seen_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool log_is_half_full() const noexcept {
    return core_.config.fence_is_sync && rings_[0].unsettled() > rings_[0].bytes() / 2;
  }

  // Whether the background thread is to give memory back, or a thread that commits.
  [[nodiscard]] bool above_limit() const noexcept;
  [[nodiscard]] bool slices_for_limit() const noexcept;
  // On memory the threads that commit do the checkpoint, one slice at a time; on files the
  // background thread does it.
  [[nodiscard]] bool commits_do_slices() const noexcept {
    return strict_ || !core_.config.fence_is_sync;
  }
  // Of a log's bytes: what is used when the threads that commit begin a checkpoint, and when one is
  // asked for.
  [[nodiscard]] static std::uint64_t full_at(const log::Ring& ring) noexcept {
    return ring.bytes() / 4 * 3;
  }
  [[nodiscard]] std::uint64_t due_at(const log::Ring& ring) const noexcept {
    return helper_ ? ring.bytes() / 2 : full_at(ring);
  }

  Marks marks_;
  std::unique_ptr<Resident> resident_;      // null if the shadow has no limit
  std::unique_ptr<ReaderGate> gate_;        // null if no other process can read the pool
  std::unique_ptr<Checkpoint> checkpoint_;  // null if the pool is read-only
  std::unique_ptr<Helper> helper_;          // null if the pool's thread makes none on memory
  std::mutex checkpointing_;
  std::atomic<bool> has_notes_{false};  // the pool has the feature
  std::atomic<std::uint64_t> checkpoints_{0}, checkpoint_id_{0};
  const std::shared_ptr<OpenSnapshots> snapshots_;  // its snapshots may outlive the pool
  Transactions<Transaction> transactions_;
};

/// One thread's transaction.
template <class Tm>
class Shadow<Tm>::Transaction : public RedoTransaction<Shadow<Tm>, Tm, log::LogWriter> {
  using Base = RedoTransaction<Shadow<Tm>, Tm, log::LogWriter>;
  using Base::core_, Base::directory_, Base::engine_, Base::inside_, Base::offset_of, Base::ops_,
      Base::record_, Base::ring_, Base::tm_, Base::view_;

 public:
  Transaction(Shadow& engine, int slot);

  using Writer = shadow::Writer<Transaction>;

  void begin(bool update) {
    Base::begin(update);
    saver_.begin();
    // mutant: snapshot-write-alone-saves
    stores_alone_ = tm_.alone() && !saver_.saving();
  }
  void rollback() noexcept {
    special_ &= ~runs_again;
    (void)Base::roll_back([this]() noexcept {
      // mutant: snapshot-rollback-stamps
      if (saver_.saving()) saver_.rolled_back(clock());
    });
  }
  std::byte* alloc(std::uint64_t bytes) {
    if (saver_.saving()) return view_ + this->record_alloc(bytes, OwnsAndSaves{*this}).offset;
    return Base::alloc(bytes);
  }
  void write(std::uint64_t* a, std::uint64_t v) {
    // SHADOW-2: the record holds every word that is stored. What can fail comes before what can't,
    // so a rollback finds each old value.
    tm_.own(a);
    const std::uint64_t offset = offset_of(a);
    // mutant: snapshot-saves-before-store
    if (saver_.saving()) saver_.save(offset, 8);
    record_.word(offset, v, *a);
    mark_.mark(offset, tm_.alone());
    tm_.put(a, v);
  }
  /// write() where no other thread writes, none has a snapshot and the record has space. It makes
  /// no call, so that a virtual call of it saves no registers: 11 of 45 instructions less
  /// (DynamicTransactionOver). Returns false, having done nothing, anywhere else. No Writer may
  /// have the cursor (SHADOW-3).
  [[nodiscard]] [[gnu::always_inline]] bool write_alone(std::uint64_t* a,
                                                        std::uint64_t v) noexcept {
    log::RecordCursor cursor = record_.cursor();
    if (__builtin_expect(!stores_alone_ || !cursor.fits(record_.end()), 0)) return false;
    const std::uint64_t offset = offset_of(a);
    cursor.add(offset, v, *a);
    record_.cursor(cursor);
    Marks::mark_alone(mark_.words(), offset);
    tm::store_word(a, v);
    return true;
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if (i == 0 || (reinterpret_cast<std::uintptr_t>(a + i) & 63) == 0) tm_.own(a + i);
    const std::uint64_t offset = offset_of(a);
    if (saver_.saving()) saver_.save(offset, n * 8);
    record_.words_over(offset, src, n, a);
    mark_.mark(offset, n * 8, tm_.alone());
    for (std::uint64_t i = 0; i < n; ++i) tm_.put(a + i, src[i]);
  }

  /// Adds an event to the transaction's record: it is durable with the transaction, or never was.
  [[gnu::noinline, gnu::cold]] void emit(std::string_view topic, std::string_view bytes,
                                         std::uint16_t schema) {
    const log::Note note{topic, bytes, schema, engine_.unix_ns()};
    log::check_note(note);
    log::add_note(record_, note);
    engine_.will_have_notes();  // what throws here refuses the transaction
  }

  std::uint64_t commit(Durability durability) {
    if (__builtin_expect(special_ != 0, 0)) return commit_specially(durability);
    if (record_.empty()) return this->commit_read_only(durability);
    return commit_record(durability);
  }

 private:
  friend class Shadow;
  friend Writer;

  static constexpr std::uint64_t volatile_words = 1 << 17;  // 1 MiB
  // A new span's bitmap lies on memory that was data, which a snapshot may still read.
  struct OwnsAndSaves {
    Transaction& transaction;
    void own(const std::uint64_t* a) {
      point();
      transaction.tm_.own(a);
    }
    void will_zero(const std::uint64_t* from, std::uint64_t bytes) {
      // mutant: snapshot-saves-bitmaps
      transaction.saver_.save(transaction.offset_of(from), bytes);
    }
  };
  [[nodiscard]] std::uint64_t clock() const noexcept {
    return engine_.tm_.domain.clock.load(std::memory_order_acquire);  // pairs with an id's draw
  }
  // SNAP-4: within isolation, when the id is drawn.
  [[gnu::always_inline]] void stamp(std::uint64_t id) noexcept {
    // mutant: snapshot-commit-stamps
    if (saver_.saving()) stamp_saved(id);
  }
  [[gnu::noinline, gnu::cold]] void stamp_saved(std::uint64_t id) noexcept {
    saver_.committed(id, ops_, directory_);
  }
  [[noreturn]] [[gnu::cold]] void run_without_writer() {
    keeps_cursor_ = true;
    special_ |= runs_again;
    this->throw_log_full({0, Lack::nothing});
  }

  // Functions of their own, the last calls of those that call them: so commit_strict() is inlined
  // once, and what the pipelined order or a special commit needs does not cost a strict commit the
  // saving of registers.
  std::uint64_t commit_record(Durability durability) {
    return engine_.strict_ ? commit_strict_record() : commit_pipelined_record(durability);
  }
  [[gnu::noinline]] std::uint64_t commit_strict_record() {
    if (core_.forked()) core_.refuse();
    if (this->take_ring()) next_slice_ = 0;
    const std::uint64_t id =
        this->commit_strict([this](std::uint64_t drawn) { stamp(drawn); }, [] {});
    if (__builtin_expect(ring_->tail() >= next_slice_, 0)) engine_.slice(*this, false);
    return id;
  }
  [[gnu::noinline]] std::uint64_t commit_pipelined_record(Durability durability) {
    if (core_.forked()) core_.refuse();
    const std::uint64_t id =
        this->commit_pipelined(durability, [this](std::uint64_t drawn) { stamp(drawn); }, [] {});
    if ((!core_.config.fence_is_sync || special_ != 0) &&
        __builtin_expect(ring_->tail() >= next_slice_, 0))
      engine_.slice(*this, false);
    return id;
  }
  [[gnu::noinline, gnu::cold]] std::uint64_t commit_specially(Durability durability) {
    // The program has swallowed what run_without_writer() threw.
    if ((special_ & runs_again) != 0) this->throw_log_full({0, Lack::nothing});
    engine_.note_pages(*this);
    if (record_.empty()) return this->commit_read_only(durability);
    return commit_record(durability);
  }

  const Marks& mark_;
  Saver saver_;
  // No other thread writes, and no line is saved: of the transaction, from its begin on, so that
  // write_alone() asks one word.
  bool stores_alone_ = false;
  bool lends_ = false, keeps_cursor_ = false;  // Writer
  // What a commit has to do besides, in one word that it asks: it runs again (Writer), or the
  // shadow has a limit.
  static constexpr unsigned runs_again = 1, has_limit = 2;
  unsigned special_ = 0;
  std::uint64_t next_slice_ = 0;
};

}  // namespace perdure::engine::shadow
