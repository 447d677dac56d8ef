// SPDX-License-Identifier: BSD-3-Clause
//
// Shadow's parts that are off the hot path; compiled once per instance (instances.cpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "perdure/engine/redo_engine_impl.hpp"
#include "perdure/engine/shadow/checkpoint.hpp"
#include "perdure/engine/shadow/publish_checkpoint.hpp"
#include "perdure/engine/shadow/reader_gate.hpp"
#include "perdure/engine/shadow/resident.hpp"
#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"

namespace perdure::engine::shadow {

// Without isolation there are no snapshots.
template <class Tm>
OpenSnapshots::Waits waits_of(typename Tm::Shared& shared) {
  if constexpr (tm::knows_updates<Tm>)
    return {[&shared] { shared.wait_for_updates(); }, [&shared] { return shared.no_update(); }};
  return {};
}

template <class Tm>
pool::Identity Shadow<Tm>::identity(const Config& config) {
  const bool pipelined = config.fence_is_sync || config.durability != Durability::durable;
  return Base::identity_of(pipelined ? pool::CommitOrder::pipelined : pool::CommitOrder::strict,
                           config);
}

template <class Tm>
Shadow<Tm>::Shadow(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery),
      marks_(pool::Directory(file.header()).max_data_bytes()),
      checkpoint_id_(file.header().checkpoint_id),
      snapshots_(std::make_shared<OpenSnapshots>(
          core_, tm_.domain, config.options.template get<ShadowOptions>().snapshot_memory,
          waits_of<Tm>(tm_))) {
  const pool::Directory directory(file.header());
  if (!file.read_only()) {
    if (config.max_resident != 0)
      resident_ = std::make_unique<Resident>(core_.medium, marks_, file.view(), directory,
                                             config.max_resident);
    gate_ = ReaderGate::of_session(file, config.readers.writer_patience, checkpoint_id_,
                                   strict_ ? 0 : writer_.durable());
    if (gate_ && !strict_) writer_.tell_durable(file.reader_words()->durable_id);
    checkpoint_ = std::make_unique<Checkpoint>(core_.medium, marks_, file.view(), file.header(),
                                               resident_.get(), gate_.get());
    using Use = ShadowOptions::Helper;
    const Use use = config.options.template get<ShadowOptions>().helper;
    // A copy by another thread must leave the transactions of the others as they are.
    if (strict_ && tm::copies_beside<Tm> && !resident_ && use != Use::off &&
        (use == Use::on || rings_[0].bytes() >= Helper::min_log))
      helper_ = std::make_unique<Helper>(use);
  }
  EngineBase::show_stats(*this);
}

template <class Tm>
Shadow<Tm>::~Shadow() {
  snapshots_->end();
  background_.stop();
}

template <class Tm>
Shadow<Tm>::Transaction::Transaction(Shadow& engine, int slot)
    : Base(engine, slot, &engine.marks_, volatile_words, false, true),
      mark_(engine.marks_),
      saver_(*engine.snapshots_) {
  if (core_.file.read_only()) return;
  next_slice_ = engine.commits_do_slices() ? engine.due_at(*ring_) : never;
  if (engine.resident_) special_ = has_limit;
}

// RESIDENT-3: called at a commit, before isolation ends.
template <class Tm>
void Shadow<Tm>::note_pages(Transaction& transaction) noexcept {
  resident_->note(transaction.record_);
  if (resident_->above()) transaction.next_slice_ = 0;
}

template <class Tm>
bool Shadow<Tm>::slices_for_limit() const noexcept {
  return resident_ && (resident_->above() || resident_->giving_back());
}

template <class Tm>
bool Shadow<Tm>::above_limit() const noexcept {
  return !commits_do_slices() && resident_ && resident_->above();
}

template <class Tm>
Status Shadow<Tm>::wait(std::uint64_t id) {
  if (strict_ || writer_.durable() >= id) return {};
  if (Status s = Base::wait(id); !s.ok()) return s;
  // Without the thread, the commit that finds no log space makes the checkpoint
  // (wait_for_log_space).
  if (log_is_half_full()) (void)background_.notify();
  return {};
}

// Does one slice, or all that is left, in a thread that is between transactions. If `needed` is not
// 0 and the transaction's log has that much free space by now (in bytes), it does nothing.
template <class Tm>
void Shadow<Tm>::slice(Transaction& transaction, bool all, std::uint64_t needed) {
  log::Ring& ring = *transaction.ring_;
  const bool over = resident_ && resident_->over();
  if (!all && !over && !commits_do_slices()) {  // only because of the limit
    transaction.next_slice_ = never;
    if (background_.notify()) return;
  }
  // More copies are made only when some have been given back.
  all |= over;
  if (!all && leaves_to_helper(transaction)) return;
  std::unique_lock lock(checkpointing_, std::defer_lock);
  if (all)
    lock.lock();
  else if (!lock.try_lock()) {
    transaction.next_slice_ = ring.tail() + ring.bytes() / 256;
    return;
  }
  if (core_.state() & EngineBase::poisoned_bit) return;
  if (needed != 0 && ring.fits(needed)) return;
  const std::uint64_t trigger = ring.settled() + full_at(ring);
  if (!all && !checkpoint_->active() && ring.tail() < trigger && !slices_for_limit()) {
    // Another thread's checkpoint has truncated the log meanwhile.
    transaction.next_slice_ = ring.settled() + due_at(ring);
    return;
  }
  // A quarter of the ring is left when the checkpoint starts. It is paced to end with half of that
  // to spare, and 512 pages take less than a millisecond.
  constexpr std::size_t most = 512;
  try {
    do {
      const std::size_t left = checkpoint_->pages_left();
      if (!step_locked(transaction, all ? most : std::min<std::size_t>(most, left / 24 + 16)))
        break;
    } while (all);
  } catch (const std::bad_alloc&) {
    if (all) throw;
    // The slice is a commit's: that commit is done, and the next one tries again.
  }
  const std::size_t left = checkpoint_->pages_left();
  const std::uint64_t step =
      left > 24 * most ? ring.bytes() / 256 * (24 * most) / left : ring.bytes() / 256;
  transaction.next_slice_ = !commits_do_slices()    ? never
                            : slices_for_limit()    ? ring.tail()
                            : checkpoint_->active() ? ring.tail() + step
                                                    : ring.settled() + due_at(ring);
}

// On memory: where a helper is wanted, a log that is half full asks it for a checkpoint; what it
// has not done when the log is three quarters full, the threads that commit do. Returns whether
// this thread has nothing to do.
template <class Tm>
bool Shadow<Tm>::leaves_to_helper(Transaction& transaction) {
  const log::Ring& ring = *transaction.ring_;
  // Before the helper is asked, which may move it at once: this log would then be seen again only
  // when it is three quarters full.
  const std::uint64_t settled = ring.settled();
  const std::uint64_t used = ring.tail() - settled;
  if (!helper_ || used >= full_at(ring)) return false;
  const bool due = used >= due_at(ring);
  if (due && helper_->wanted()) {
    helper_->ask();
    (void)background_.notify();
  }
  transaction.next_slice_ = settled + (due ? full_at(ring) : due_at(ring));
  return true;
}

// The pool's own thread makes the checkpoint that was asked for, beside the threads that commit. It
// leaves the rest to them when a log is three quarters full: they have to slow down then.
template <class Tm>
bool Shadow<Tm>::help() {
  // 512 KiB at most: a thread that wants to take the bias may have to wait for such a slice.
  constexpr std::size_t pages = 128;
  const auto a_log_has = [this](auto&& bytes_of) {
    for (std::size_t i = 0; i < rings_.size(); ++i)
      if (rings_[i].unsettled() >= bytes_of(rings_[i])) return true;
    return false;
  };
  helper_->begin();
  bool worked = false, finished = false;
  for (bool more = true; more;) {
    const std::lock_guard lock(checkpointing_);
    if (core_.state() != 0) break;
    if (!checkpoint_->active() &&
        (worked || !a_log_has([this](const log::Ring& r) { return due_at(r); })))
      break;
    if (worked && a_log_has(full_at)) break;
    more = slice_locked(transaction(), pages);
    worked = true;
    finished = !more && core_.state() == 0;
  }
  helper_->end(worked, finished);
  return true;
}

// A slice of a checkpoint, or, where none is in progress, of giving memory back. Returns whether
// more is left of either.
template <class Tm>
bool Shadow<Tm>::step_locked(Transaction& transaction, std::size_t pages) {
  if (resident_ && resident_->giving_back() && !checkpoint_->active()) {
    resident_->give_back(transaction.tm_);
    return resident_->giving_back();
  }
  if (slice_locked(transaction, pages)) return true;
  if (!resident_ || checkpoint_->active() || !resident_->above()) return false;
  resident_->begin();
  return true;
}

// Returns false when the checkpoint is finished (or the medium failed).
template <class Tm>
bool Shadow<Tm>::slice_locked(Transaction& transaction, std::size_t pages) {
  // mutant: checkpoint-id-finished, checkpoint-id-durable
  if (!checkpoint_->active())
    checkpoint_->start(strict_ ? tm_.domain.low_watermark() : writer_.durable());
  // pairs with the draw of an id
  const auto clock = [this] { return tm_.domain.clock.load(std::memory_order_acquire); };
  const auto step =
      checkpoint_->slice(transaction.tm_, pages, strict_, clock, [this]() -> std::uint64_t {
        // Strict order: a commit whose fence failed has poisoned the core before a copy of its
        // writes counts (BESIDE-2). Nothing of it may reach the data region (CKPT-1).
        return !strict_ ? writer_.durable() : core_.state() & EngineBase::poisoned_bit ? 0 : 1;
      });
  // This thread's streams must be durable before the header says so, and another thread may finish
  // the checkpoint.
  if (Status s = core_.medium.fence(); !s.ok()) return core_.poison(s), false;
  if (core_.state() & EngineBase::poisoned_bit) return false;
  if (step == Checkpoint::Step::waiting)
    if (Status s = writer_.wait(checkpoint_->needs()); !s.ok()) return core_.poison(s), false;
  if (step != Checkpoint::Step::copied) return true;
  if (Status s = finish_checkpoint(); !s.ok()) core_.poison(s);
  return false;
}

template <class Tm>
Status Shadow<Tm>::finish_checkpoint() {
  const std::uint64_t x = checkpoint_->checkpoint_id();
  if (Status s = publish_checkpoint(core_, rings_, followed_.floors(), x); !s.ok()) return s;
  checkpoint_id_.store(x, std::memory_order_relaxed);
  // Release: pairs with the follower's acquire, which then gives memory back.
  if (pool::ReaderWords* const words = core_.file.reader_words(); words != nullptr)
    words->checkpoint_id.store(x, std::memory_order_release);
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  checkpoint_->finished();
  if (helper_) helper_->one_less_to_rest();
  return {};
}

template <class Tm>
void Shadow<Tm>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  const auto [bytes, lack] = needed;
  if (lack == Lack::nothing) return;
  if (lack == Lack::log_space && this->allocate_log(*transaction.ring_, bytes)) return;
  if (!strict_) {
    if (Status s = writer_.wait(last_recorded()); !s.ok()) core_.poison(s);
    if (lack == Lack::volatile_log) return;  // it is empty now
  }
  const log::Ring& ring = *transaction.ring_;
  // The first one may have been the rest of an older checkpoint.
  for (int i = 0; i < 2 && !ring.fits(bytes); ++i) slice(transaction, true, bytes);
  // mutant: log-space-waits-for-floor
  if (!ring.fits(bytes))
    followed_.floors().wait(checkpoint_id_.load(std::memory_order_relaxed),
                            [this] { return core_.state() != 0; });
  std::this_thread::yield();
}

template <class Tm>
Status Shadow<Tm>::checkpoint() {
  if (core_.state() != 0) return core_.why();
  if (!strict_)
    if (Status s = wait(last_recorded()); !s.ok()) return s;
  Transaction& c = transaction();
  const std::lock_guard lock(checkpointing_);
  if (checkpoint_->active())
    while (slice_locked(c, 4096)) {}
  while (slice_locked(c, 4096)) {}
  return core_.why();
}

// For files, where a checkpoint's syncs would delay the thread that commits; for memory, where a
// helper is wanted.
template <class Tm>
bool Shadow<Tm>::follow_log(std::chrono::microseconds /*nap*/) {
  if (nothing_to_follow()) return false;
  try {
    if (helper_) return help();
    slice(transaction(), true);
    return true;
  } catch (const std::bad_alloc&) {
    // On a file the background thread tries again after a nap; on memory the threads that commit
    // do, at three quarters of a log.
    return false;
  }
}

template <class Tm>
std::uint64_t Shadow<Tm>::unix_ns() noexcept {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count());
}

// FEATURE-1: the header has the feature, durably, before a record has a note.
template <class Tm>
void Shadow<Tm>::will_have_notes() {
  // Relaxed: whoever sees it false asks the file, which knows.
  if (has_notes_.load(std::memory_order_relaxed)) return;
  // mutant: notes-feature-first
  core_.file.require_feature(pool::Feature::note_entries).or_throw();
  has_notes_.store(true, std::memory_order_relaxed);
}

template <class Tm>
Stats Shadow<Tm>::stats() {
  Stats s;
  this->fill(s);
  if (helper_) s.helped_checkpoints = helper_->checkpoints();  // no more than all that follow
  s.checkpoint_id = checkpoint_id_.load(std::memory_order_relaxed);
  s.checkpoints = checkpoints_.load(std::memory_order_relaxed);
  if (checkpoint_) s.checkpoint_lines = checkpoint_->lines();
  snapshots_->fill(s);
  if (gate_) s.reader_waits = gate_->waits(), s.readers_expelled = gate_->expelled();
  if (resident_) s.shadow_pages = resident_->pages(), s.evictions = resident_->given_back();
  return s;
}

}  // namespace perdure::engine::shadow
