// SPDX-License-Identifier: BSD-3-Clause
//
// The commit of shadow/htm (htm.hpp). Compiled once per instance (htm_instances.cpp).
#pragma once

#include "perdure/engine/shadow/htm.hpp"
#include "perdure/log/record.hpp"

namespace perdure::engine::shadow {

template <class Tm>
std::uint64_t ShadowHtm<Tm>::Transaction::commit(Durability durability) {
  if (record_.empty()) {
    const std::uint64_t seen = this->end_read_only();
    // What it saw may not be durable yet, and its result may reveal that (LAW-2). view() waits by
    // itself, where it is asked to.
    // mutant: htm-read-acknowledged-durable
    if (update_ && durability != Durability::async) engine_.wait(seen).or_throw();
    return seen;
  }
  if (core_.forked()) core_.refuse();
  if (this->take_ring()) {
    next_slice_ = 0;
    index_ = engine_.index_of(*ring_);
  }
  std::uint64_t id = 0;
  {
    // A turn at the shared ring lasts until the transaction is acknowledged (DEPEND-3, DEPEND-4).
    struct Turn {
      typename ThreadLogs<log::Ring>::Use& use;
      ~Turn() { use.end(); }
    } const turn{use_};
    // Space for what the record may have to name, which is known when nothing may fail any more.
    const std::uint64_t names = 2 * (engine_.commits_.size() - 1);
    record_.room(names);
    const std::uint64_t bytes = record_.bytes_with(names);
    if (__builtin_expect(!ring_->fits(bytes) || !ring_->ready(bytes), 0))
      this->throw_log_full({bytes});
    // The transaction before on this ring may be lost: then none may follow it there (DEPEND-4).
    // mutant: htm-ring-of-lost-refuses
    if (core_.poisoned()) core_.refuse();
    bool durable = false;
    tm_.commit(
        [&] {
          if (!ops_.empty()) apply_heap_ops();
        },
        [&](std::uint64_t timestamp) { engine_.commits_.committed(index_, timestamp); },
        [&](std::uint64_t timestamp) {
          // Visible to every thread from here on; nothing throws.
          id = timestamp;
          durable = become_durable(timestamp);
        });
    this->done([] {});
    if (__builtin_expect(!durable, 0)) core_.refuse();
    ring_->prepare_ahead();
  }
  if (__builtin_expect(ring_->tail() >= next_slice_, 0)) engine_.slice(*this, false);
  return id;
}

// Returns whether the transaction may be acknowledged.
template <class Tm>
bool ShadowHtm<Tm>::Transaction::become_durable(std::uint64_t timestamp) {
  mark_lines();
  name_open(timestamp);
  const std::uint64_t bytes = record_.bytes();
  bool durable = this->persist_or_lose(
      timestamp,
      [&] {
        // DEPEND-1: the record is durable before the transaction is acknowledged, and before
        // another one that has seen it is. Such a one names it until then.
        const std::uint64_t end = ring_->append(
            record_, log::RecordKind::dependent, log::id_of_timestamp(timestamp),
            static_cast<std::uint32_t>(timestamp & ((1U << log::timestamp_bits) - 1)));
        this->count(bytes);
        return ring_->fence(end);
      },
      [&] { this->count(bytes); });
  // DEPEND-5. Those that it names began their fences earlier, mostly.
  // mutant: htm-waits-for-named, htm-acknowledged-after-named
  for (const Named& n : named_)
    durable &= engine_.commits_.wait(n.ring, n.timestamp, [this] { return core_.poisoned(); });
  if (__builtin_expect(!durable, 0)) {
    // Before the slot stops pending: no checkpoint may write what this transaction stored, nor
    // durable_id() pass it.
    core_.lost(timestamp, {});
    engine_.commits_.failed(index_);
    return false;
  }
  // mutant: htm-acknowledged-after-named-late
  engine_.commits_.acknowledge(index_, timestamp);
  return true;
}

// DEPEND-7. Other threads mark lines in the same words: in and outside of hardware transactions, so
// each mark is a locked instruction, where it is not set already.
template <class Tm>
void ShadowHtm<Tm>::Transaction::mark_lines() noexcept {
  // mutant: htm-marks-before-finished
  record_.each_run(
      [this](std::uint64_t offset, std::uint64_t n) { mark_.mark(offset, n * 8, false); });
}

template <class Tm>
void ShadowHtm<Tm>::Transaction::name_open(std::uint64_t timestamp) {
  named_.clear();  // its memory suffices for all rings
  Tm::point();
  // mutant: htm-names-open
  engine_.commits_.each_open(
      index_, timestamp,
      [this](std::size_t ring, std::uint64_t open) {
        record_.after(ring, open);
        named_.push_back({ring, open});
      },
      [] { Tm::point(); });
}

template <class Tm>
void ShadowHtm<Tm>::Transaction::apply_heap_ops() {
  target_.alone(false);  // its marks beside those of mark_lines() in other threads
  TransactionBase<Tm>::apply_heap_ops(target_);
}

}  // namespace perdure::engine::shadow
