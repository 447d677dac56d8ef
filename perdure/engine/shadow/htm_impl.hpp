// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of shadow/htm (htm.hpp) that are off the hot path: opening, checkpoints, waiting.
// Compiled once per instance (htm_instances.cpp).
#pragma once

#include <algorithm>
#include <new>
#include <thread>

#include "perdure/engine/redo_engine_impl.hpp"
#include "perdure/engine/shadow/checkpoint.hpp"
#include "perdure/engine/shadow/htm.hpp"
#include "perdure/engine/shadow/htm_commit.hpp"
#include "perdure/engine/shadow/publish_checkpoint.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"

namespace perdure::engine::shadow {

// Timestamps begin where an id begins that no record has had: the checkpoint id's own would be
// taken for one that the data region holds.
template <class Tm>
ShadowHtm<Tm>::ShadowHtm(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery, log::first_timestamp_after(file.header().checkpoint_id)),
      marks_(pool::Directory(file.header()).max_data_bytes()),
      commits_(rings_.size()),
      checkpoint_id_(file.header().checkpoint_id) {
  if (!file.read_only()) {
    // FEATURE-1: before the first record that needs it.
    file.require_feature(pool::Feature::dependent_records).or_throw();
    checkpoint_ = std::make_unique<Checkpoint>(core_.medium, marks_, file.view(), file.header(),
                                               nullptr, nullptr);
  }
  EngineBase::show_stats(*this);
}

template <class Tm>
ShadowHtm<Tm>::~ShadowHtm() {
  background_.stop();
}

template <class Tm>
ShadowHtm<Tm>::Transaction::Transaction(ShadowHtm& engine, int slot)
    : Base(engine, slot, &engine.marks_, 16, false, false), mark_(engine.marks_) {
  named_.reserve(engine.commits_.size());
}

template <class Tm>
std::size_t ShadowHtm<Tm>::index_of(const log::Ring& ring) const noexcept {
  std::size_t i = 0;
  while (&rings_[i] != &ring) ++i;
  return i;
}

template <class Tm>
Status ShadowHtm<Tm>::wait(std::uint64_t id) {
  if (commits_.wait_up_to(id, [this] { return core_.poisoned(); })) return {};
  return core_.why();
}

// Not complete(), which is below what was acknowledged while any thread is in a transaction. The
// bound is a tick below the time: what becomes visible later with a lower timestamp is seen only by
// transactions whose own bound is above the result.
template <class Tm>
std::uint64_t ShadowHtm<Tm>::durable_id() const noexcept {
  const std::uint64_t before_now = tm_.clock.now() - Tm::Shared::tick_step;
  const std::uint64_t bound = commits_.below_open(std::min(before_now, tm_.last()));
  std::uint64_t seen = durable_.load(std::memory_order_relaxed);
  if (core_.poisoned()) return seen;  // nothing more is acknowledged (LAW-9)
  while (seen < bound && !durable_.compare_exchange_weak(seen, bound, std::memory_order_relaxed)) {}
  return std::max(seen, bound);
}

// As records and the header count.
template <class Tm>
std::uint64_t ShadowHtm<Tm>::last_recorded() const noexcept {
  return std::max(log::id_of_timestamp(tm_.last()), checkpoint_id_.load(std::memory_order_relaxed));
}

// DEPEND-6: an id up to which every transaction is acknowledged and has set its marks. 65,536
// timestamps have one id (1.4 us at 3 GHz): the last transaction's must be over, so that the
// checkpoint covers it.
template <class Tm>
std::uint64_t ShadowHtm<Tm>::bound_of_checkpoint() const noexcept {
  const std::uint64_t last = log::id_of_timestamp(tm_.last());
  while (log::id_of_timestamp(tm_.clock.now()) <= last) __builtin_ia32_pause();
  // mutant: htm-checkpoint-id-complete
  const std::uint64_t all = tm_.complete();
  return std::max(log::id_of_timestamp(all + 1) - 1,
                  checkpoint_id_.load(std::memory_order_relaxed));
}

// A slice of a checkpoint, or all that is left. If `needed` is not 0 and the transaction's ring has
// that much free space by now (in bytes), it does nothing.
template <class Tm>
void ShadowHtm<Tm>::slice(Transaction& transaction, bool all, std::uint64_t needed) {
  // While the lines of a slice are copied, no hardware transaction runs.
  constexpr std::size_t most = 128;
  log::Ring& ring = *transaction.ring_;
  const std::uint64_t full = ring.bytes() / 4 * 3, step = ring.bytes() / 256;
  std::unique_lock lock(checkpointing_, std::defer_lock);
  if (all)
    lock.lock();
  else if (!lock.try_lock()) {
    transaction.next_slice_ = ring.tail() + step;
    return;
  }
  if (core_.poisoned() || (needed != 0 && ring.fits(needed))) return;
  if (!all && !checkpoint_->active() && ring.used() < full) {
    transaction.next_slice_ = ring.head() + full;
    return;
  }
  try {
    do {
      const std::size_t left = checkpoint_->pages_left();
      // A quarter of the ring is left when the checkpoint starts: it ends with half of that.
      if (!slice_locked(transaction, all ? most : std::min(most, left / 24 + 16))) break;
    } while (all);
  } catch (const std::bad_alloc&) {
    if (all) throw;
    // The slice is a commit's: that commit is done, and the next one tries again.
  }
  const std::size_t left = checkpoint_->pages_left();
  transaction.next_slice_ = !checkpoint_->active() ? ring.head() + full
                            : left > 24 * most     ? ring.tail() + step * (24 * most) / left
                                                   : ring.tail() + step;
}

// Returns false when the checkpoint is finished (or the medium failed).
template <class Tm>
bool ShadowHtm<Tm>::slice_locked(Transaction& transaction, std::size_t pages) {
  if (!checkpoint_->active()) checkpoint_->start(bound_of_checkpoint());
  // Where a commit's fence failed, the pool was poisoned before its slot stopped pending, and
  // nothing of it may reach the data region (CKPT-1).
  const auto durable = [this]() -> std::uint64_t {
    const std::uint64_t all = tm_.complete();
    return core_.poisoned() ? 0 : all;
  };
  const auto step = checkpoint_->slice(
      transaction.tm_, pages, false, [this] { return tm_.clock.now(); }, durable);
  // This thread's streams must be durable before the header says so, and another thread may finish
  // the checkpoint.
  if (Status s = core_.medium.fence(); !s.ok()) return core_.poison(s), false;
  if (core_.poisoned()) return false;
  if (step == Checkpoint::Step::waiting)
    // For fences of other threads that have begun, and for tries of the hardware.
    while (!core_.poisoned() && durable() < checkpoint_->needs()) std::this_thread::yield();
  if (step != Checkpoint::Step::copied) return !core_.poisoned();
  const std::uint64_t x = checkpoint_->checkpoint_id();
  if (Status s = publish_checkpoint(core_, rings_, followed_.floors(), x); !s.ok())
    return core_.poison(s), false;
  checkpoint_id_.store(x, std::memory_order_relaxed);
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  checkpoint_->finished();
  return false;
}

template <class Tm>
void ShadowHtm<Tm>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  const auto [bytes, lack] = needed;
  if (lack == Lack::nothing || this->allocate_log(*transaction.ring_, bytes)) return;
  const log::Ring& ring = *transaction.ring_;
  // The first one may have been the rest of an older checkpoint.
  for (int i = 0; i < 2 && !ring.fits(bytes); ++i) slice(transaction, true, bytes);
  std::this_thread::yield();
}

template <class Tm>
Status ShadowHtm<Tm>::checkpoint() {
  if (core_.state() != 0) return core_.why();
  Transaction& c = transaction();
  const std::lock_guard lock(checkpointing_);
  if (checkpoint_->active())
    while (slice_locked(c, 4096)) {}
  while (slice_locked(c, 4096)) {}
  return core_.why();
}

template <class Tm>
Stats ShadowHtm<Tm>::stats() {
  Stats s;
  this->fill(s);
  s.durable_id = durable_id();
  s.aborts += tm_.unseen_aborts();
  s.without_lock = tm_.committed();
  // The last timestamp that has this id: all that it covers, as receipts count.
  s.checkpoint_id = log::first_timestamp_after(checkpoint_id_.load(std::memory_order_relaxed)) - 1;
  s.checkpoints = checkpoints_.load(std::memory_order_relaxed);
  if (checkpoint_) s.checkpoint_lines = checkpoint_->lines();
  return s;
}

}  // namespace perdure::engine::shadow
