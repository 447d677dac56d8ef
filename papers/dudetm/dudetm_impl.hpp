// SPDX-License-Identifier: BSD-3-Clause
//
// Dudetm's parts that are off the hot path; compiled once per instance (instances.cpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "papers/dudetm/dudetm.hpp"
#include "papers/names.hpp"
#include "perdure/engine/redo_engine_impl.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"

namespace perdure::papers::dudetm {

template <class Tm>
Dudetm<Tm>::Dudetm(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery), checkpoint_id_(file.header().checkpoint_id) {
  if constexpr (timestamps) writer_.configure([this] { return tm_.complete(); });
  if (!file.read_only()) {
    start_replay();
    group_transactions();
  }
  EngineBase::show_stats(*this);
}

template <class Tm>
void Dudetm<Tm>::start_replay() {
  const pool::Header& header = core_.file.header();
  std::function<std::uint64_t()> low_watermark;
  if (strict_)
    low_watermark = [this] {
      const std::uint64_t id = tm_.domain.low_watermark();  // read first, as in durable_id()
      return std::min(id, core_.first_lost() - 1);
    };
  replay_ = std::make_unique<Replay>(core_, rings_, std::move(low_watermark), writer_.kept(),
                                     header.checkpoint_id);
  const auto& options = core_.config.options.template get<papers::DudetmOptions>();
  if (options.shadow_size == 0) return;
  const ShadowPaging how = options.shadow_paging;
  const bool software = how == ShadowPaging::automatic
                            ? options.shadow_size < core_.file.heap().used_bytes() / small_share
                            : how == ShadowPaging::software;
  const pool::Directory directory(header);
  paging_ = std::make_unique<Paging>(core_.file.view(), directory.max_data_bytes(),
                                     directory.first_chunk() * pool::chunk_bytes,
                                     options.shadow_size, software);
}

// Configures combination, compression, logs without a bound, and that nothing is promised where ids
// are timestamps. Called before the first transaction.
template <class Tm>
void Dudetm<Tm>::group_transactions() {
  const Variant variant = variant_of(core_.config);
  const bool promises = !variant.unbounded && !timestamps;
  if (strict_ || (variant.group == 0 && promises)) return;
  Grouping grouping{variant.group,
                    variant.compress,
                    core_.file.header(),
                    {},
                    core_.config.options.template get<papers::DudetmOptions>().combined};
  if (!promises)
    grouping.wait_for_log_space = [this] {
      replay_->checkpoint();
      return core_.poisoned() ? core_.why() : Status();
    };
  writer_.configure(std::move(grouping));
  // FEATURE-1: before the first record of a kind that not every build knows.
  // mutant: combined-records-feature
  if (variant.group != 0) core_.file.require_feature(pool::Feature::combined_records).or_throw();
}

template <class Tm>
Dudetm<Tm>::Transaction::Transaction(Dudetm& engine, int slot)
    : Base(engine, slot, nullptr, variant_of(engine.core_.config).volatile_words,
           variant_of(engine.core_.config).unbounded, false) {
  if (core_.file.read_only()) return;
  // This covers what most transactions need. If it is refused, their commits will be refused.
  if (!engine.strict_ && slot < base::max_threads && (timestamps || !engine.writer_.promises()))
    (void)engine.writer_.allow(1, allowance_);
  if (!engine.paging_) return;
  pages_.emplace(*engine.paging_, slot);
  frames_ = engine.paging_->frames();
}

// Called between transactions.
template <class Tm>
void Dudetm<Tm>::evict() {
  if (core_.state() != 0) return;  // begin() throws the reason
  const auto reproduced = [this] { return replay_->reproduced(); };
  while (paging_->full())
    // If nothing can be evicted, transactions in flight hold every page.
    if (!paging_->evict(reproduced, [this](std::uint64_t id) { return replay_up_to(id); }).value())
      return;
}

template <class Tm>
Status Dudetm<Tm>::replay_up_to(std::uint64_t id) {
  if (Status s = this->wait(id); !s.ok()) return s;
  while (replay_->reproduced() < id) {
    if (core_.state() & EngineBase::poisoned_bit) return core_.why();
    // In the strict order the record of a lower id may not be in its ring yet.
    if (!replay_->apply(~std::uint64_t{0})) std::this_thread::yield();
  }
  return {};
}

template <class Tm>
void Dudetm<Tm>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  if (needed.lack == Lack::page_eviction) {
    // Otherwise each eviction by a small transaction would stop a transaction of more pages than
    // the limit.
    constexpr unsigned patience = 4;
    if (++transaction.page_restarts_ < patience) return paging_->wait();
    transaction.hold_ = paging_->hold();
    return;
  }
  const auto [bytes, lack] = needed;
  if (lack == Lack::log_space && allocate_log(transaction, bytes)) return;
  const log::Ring& ring = *transaction.ring_;
  if (!strict_) {
    if (Status s = writer_.wait(tm::last_id<Tm>(tm_)); !s.ok()) core_.poison(s);
    if (lack == Lack::volatile_log) return;  // it is empty now
    if (ring.used() + writer_.outstanding() + bytes > ring.bytes()) replay_->checkpoint();
    return;
  }
  if (ring.used() + bytes > ring.bytes()) replay_->checkpoint();
  std::this_thread::yield();
}

template <class Tm>
bool Dudetm<Tm>::allocate_log(Transaction& transaction, std::uint64_t bytes) {
  try {
    if (strict_ || (!timestamps && writer_.promises()))
      return Base::allocate_log(*transaction.ring_, bytes);
    const std::uint64_t words = bytes / 8;  // this is more than the record's payload
    if (transaction.allowance_ >= writer_.bytes_for(words)) return false;
    writer_.allow(words, transaction.allowance_).or_throw();
    return true;
  } catch (const error&) {
    transaction.let_pages_go();
    throw;
  }
}

template <class Tm>
Status Dudetm<Tm>::checkpoint() {
  if (core_.state() != 0) return core_.why();
  if (!strict_)
    if (Status s = this->wait(tm::last_id<Tm>(tm_)); !s.ok()) return s;
  const std::uint64_t id = last_recorded();
  while (replay_->checkpoint_id() < id) {
    if (core_.state() & EngineBase::poisoned_bit) return core_.why();
    // In the strict order the record of a lower id may not be in its ring yet.
    if (!replay_->checkpoint()) std::this_thread::yield();
  }
  return core_.why();
}

// A group that is not full waits until no transaction was added during a nap of 1.6 ms or more, or
// for 400 naps in all, about 2 s. It counts naps and reads no clock, so that a run under a
// scheduler can be repeated.
template <class Tm>
bool Dudetm<Tm>::persist(std::chrono::microseconds nap) {
  // Naps get longer, up to 5 ms.
  constexpr unsigned max_naps = 400;
  if (writer_.waiting() == 0) group_naps_ = idle_naps_ = 0;
  const bool whole = idle_naps_ == 0 && group_naps_ < max_naps;
  const std::uint64_t bytes = writer_.bytes_written(), transactions = writer_.recorded();
  const auto outcome = writer_.step(whole);
  ++group_naps_;
  if (outcome == log::LogWriter::Outcome::wrote && !standing_)
    this->pause_after(bytes, transactions);
  idle_naps_ =
      outcome == log::LogWriter::Outcome::nothing && nap >= Base::long_nap ? idle_naps_ + 1 : 0;
  return outcome == log::LogWriter::Outcome::wrote;
}

// Replays one slice of the log, so that Persist, for which a thread may wait, is not delayed for
// long. A checkpoint of the data region begins when 3/8 of a ring has been applied, so that many
// stores share a line's write-back, the fences and the header, or when there was no commit for 3
// ms. Returns whether there may be more to do at once.
template <class Tm>
bool Dudetm<Tm>::follow_log(std::chrono::microseconds nap) {
  std::uint64_t used = 0, fullest = 0;
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    used += rings_[i].used();
    fullest = std::max(fullest, rings_[i].used());
  }
  if (used == 0) return false;
  const bool idle = nap >= Base::long_nap;
  const std::uint64_t ring = rings_[0].bytes(),
                      slice = core_.config.fence_is_sync
                                  ? ring / 8
                                  : std::min<std::uint64_t>(8 << 10, ring / 16);
  bool did = false;
  if (idle || fullest > ring / 8) did = replay_->apply(idle ? ~std::uint64_t{0} : slice);
  return replay_->checkpoint_slice(idle || replay_->applied_bytes() > ring / 8 * 3) || did;
}

// The standing Reproduce thread.
template <class Tm>
void Dudetm<Tm>::reproduce() {
  using std::chrono::microseconds;
  constexpr microseconds first_nap(50), longest_nap(5000);
  microseconds nap = first_nap;
  for (;;) {
    if (!core_.poisoned() && follow_log(nap)) {
      nap = first_nap;
      if (reproduce_.stopping()) return;
    } else if (nap >= Base::long_nap && (core_.poisoned() || nothing_to_follow())) {
      if (!reproduce_.sleep([this] { return core_.poisoned() || nothing_to_follow(); })) return;
      nap = first_nap;
    } else {
      if (!reproduce_.nap(nap)) return;
      if (nap < longest_nap) nap *= 2;
    }
  }
}

template <class Tm>
bool Dudetm<Tm>::nothing_to_follow() const noexcept {
  for (std::size_t i = 0; i < rings_.size(); ++i)
    if (rings_[i].used() != 0) return false;  // there are records that are still needed
  return true;
}

// With timestamps: the durable timestamp of a moment when the data region had all that was
// recorded.
template <class Tm>
std::uint64_t Dudetm<Tm>::checkpoint_id() noexcept {
  if (replay_ && !timestamps) return replay_->checkpoint_id();
  std::uint64_t id = checkpoint_id_.load(std::memory_order_relaxed);
  if (!replay_ || !timestamps) return id;
  const std::uint64_t durable = writer_.durable();  // read first: what it covers is recorded by now
  if (replay_->checkpoint_id() < writer_.recorded()) return id;
  while (id < durable &&
         !checkpoint_id_.compare_exchange_weak(id, durable, std::memory_order_relaxed)) {}
  return std::max(id, durable);
}

template <class Tm>
Stats Dudetm<Tm>::stats() {
  Stats s;
  this->fill(s);
  s.checkpoint_id = checkpoint_id();
  s.shadow_pages = paging_ ? paging_->copies() : 0;
  s.paged_by_software = paging_ && paging_->frames() != nullptr;
  s.evictions = paging_ ? paging_->evictions() : 0;
  s.log_bytes_in = writer_.bytes_in();
  s.log_bytes_combined = writer_.bytes_combined();
  s.checkpoints = replay_ ? replay_->rounds() : 0;
  if constexpr (timestamps) {
    s.aborts += tm_.unseen_aborts();
    s.without_lock = tm_.committed();
  }
  return s;
}

}  // namespace perdure::papers::dudetm
