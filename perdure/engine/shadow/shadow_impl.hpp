// SPDX-License-Identifier: BSD-3-Clause
//
// Shadow's parts that are off the hot path; compiled once an instance (instances.cpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/pool/features.hpp"

namespace perdure::engine::shadow {

template <class Tm, Reproduce How>
pool::Identity Shadow<Tm, How>::identity(const Config& config) {
  pool::Identity who;
  const bool prefix = How == Reproduce::replay
                          ? form_of(config).order == pool::Order::prefix
                          : config.fence_is_sync || config.durability != Durability::durable;
  who.order = prefix ? pool::Order::prefix : pool::Order::held;
  who.rings = prefix ? 1 : (config.threads < 1 ? 1 : config.threads);
  return who;
}

template <class Tm, Reproduce How>
Status Shadow<Tm, How>::recover(pool::PoolFile& file, Recovery& report) {
  pool::Header& header = file.header();
  report.was_clean = header.clean != 0;
  report.last_id = header.applied;
  if (report.was_clean) return {};
  const auto start = std::chrono::steady_clock::now();
  auto done = log::recover_redo(file.medium(), header, report.plan);
  if (!done) return done.status();
  report.records = done->records;
  report.transactions = done->transactions;
  report.bytes = done->bytes;
  report.last_id = done->last_id;
  header.applied = done->last_id;  // published by start_session, together with the raised epoch
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

template <class Tm, Reproduce How>
Shadow<Tm, How>::Shadow(pool::PoolFile& file, const Config& config, const Recovery& recovery)
    : core_(file, config, recovery),
      tm_(file.header().applied),
      held_(file.header().order == pool::Order::held),
      ring_count_(file.header().ring_count),
      rings_(new log::Ring[file.header().ring_count]) {
  const pool::Header& header = file.header();
  applied_.store(header.applied, std::memory_order_relaxed);
  marks_ = std::make_unique<Marks>(marks ? header.max_home_bytes : 0);
  if constexpr (stamps) persister_.configure([this] { return tm_.complete(); });
  if (!file.read_only()) {
    for (std::uint32_t i = 0; i < ring_count_; ++i) {
      auto map = core_.medium.map_ring(pool::ring_offset(header, i), header.ring_bytes);
      rings_[i].configure(core_.medium, map.value(), log::ring_seed(header.uuid, header.epoch, i));
    }
    if constexpr (How == Reproduce::checkpoint)
      checkpoint_ =
          std::make_unique<Checkpoint>(core_.medium, *marks_, file.view(), header.max_home_bytes);
    else
      start_replay();
    if (!held_)
      persister_.configure(rings_[0], header.applied, max_group, core_.medium.append_unit());
    if constexpr (How == Reproduce::replay) group_transactions();
  } else if (!held_) {
    persister_.configure(rings_[0], header.applied, max_group, 64);
  }
  Core::show_stats(*this);
}

template <class Tm, Reproduce How>
void Shadow<Tm, How>::start_replay() {
  const pool::Header& header = core_.file.header();
  std::function<std::uint64_t()> quiet;
  if (held_)
    quiet = [this] {
      const std::uint64_t id = tm_.domain.quiet_id();  // first, as in durable_id()
      return std::min(id, core_.first_lost() - 1);
    };
  replay_ = std::make_unique<Replay>(core_, rings_.get(), ring_count_, std::move(quiet),
                                     persister_.kept(), header.applied);
  const auto& options = core_.config.options.template get<papers::DudetmOptions>();
  if (options.shadow_size == 0) return;
  const ShadowPaging how = options.shadow_paging;
  const bool software = how == ShadowPaging::automatic
                            ? options.shadow_size < core_.file.heap().used_bytes() / small_share
                            : how == ShadowPaging::software;
  paging_ = std::make_unique<Paging>(core_.file.view(), header.max_home_bytes,
                                     pool::first_chunk(header.max_home_bytes) * pool::chunk_bytes,
                                     options.shadow_size, software);
}

// Combination, compression, logs without a bound, no promises where ids are stamps: before the
// first transaction.
template <class Tm, Reproduce How>
void Shadow<Tm, How>::group_transactions() {
  const Form form = form_of(core_.config);
  const bool promises = !form.unbounded && !stamps;
  if (held_ || (form.group == 0 && promises)) return;
  log::Grouping grouping{form.group, form.compress, core_.file.header().max_home_bytes, {}};
  if (!promises)
    grouping.make_room = [this] {
      replay_->settle();
      return core_.poisoned() ? core_.why() : Status();
    };
  persister_.configure(std::move(grouping));
  // FEATURE-1: before the first record of a kind that not every build knows.
  // mutant: combined-records-feature
  if (form.group != 0) core_.file.require_feature(pool::Feature::combined_records).or_throw();
}

template <class Tm, Reproduce How>
Shadow<Tm, How>::~Shadow() {
  background_.stop();
}

template <class Tm, Reproduce How>
Shadow<Tm, How>::Context::Context(Shadow& engine, int slot)
    : Base(engine.tm_, engine.core_, slot),
      mark_(*engine.marks_),
      shares_ring_(engine.held_ && slot >= static_cast<int>(engine.ring_count_) - 1),
      engine_(engine),
      ring_(engine.ring_of(slot)),
      target_(view_, marks ? &mark_ : nullptr),
      volatile_(engine.held_ ? 16 : form_of(engine.core_.config).volatile_words,
                How == Reproduce::replay && form_of(engine.core_.config).unbounded) {
  // read-only too: commit asks whether it is empty
  record_.configure(ring_.seed(), ring_.max_record(), engine.core_.medium.append_unit());
  if (engine.core_.file.read_only()) return;
  next_slice_ = ring_.bytes() / 4 * 3;
  if (!engine.held_ && slot < base::max_threads) {  // the background thread commits nothing
    engine.persister_.add(slot, volatile_);
    // What most transactions take; where that is refused, their commit is.
    if (stamps || !engine.persister_.promises()) (void)engine.persister_.allow(1, allowance_);
  }
  if (!engine.paging_) return;
  pages_.emplace(*engine.paging_, slot);
  frames_ = engine.paging_->frames();
}

template <class Tm, Reproduce How>
Status Shadow<Tm, How>::wait(std::uint64_t id) {
  if (held_) return {};  // who has the id was told after its fence
  if (persister_.durable() >= id) return {};
  Status status = persister_.wait(id);
  if (!status.ok()) {
    core_.poison(status);
    return core_.why();
  }
  // Without the thread the commit that finds no log space checkpoints (make_room).
  if constexpr (How == Reproduce::checkpoint)
    if (log_is_half_full()) (void)background_.notify();
  return {};
}

// An asynchronous commit: the background thread makes it durable within the time that is promised.
// Without the thread the one that commits does.
template <class Tm, Reproduce How>
void Shadow<Tm, How>::commit_waits_for_nobody(std::uint64_t id) {
  if (__builtin_expect(!async_seen_.load(std::memory_order_relaxed), 0))
    async_seen_.store(true, std::memory_order_relaxed);
  if (__builtin_expect(!background_.notify(), 0)) wait(id).or_throw();
}

// One slice, or all that is left, by a thread between its transactions.
template <class Tm, Reproduce How>
void Shadow<Tm, How>::slice(Context& context, bool all) {
  log::Ring& ring = held_ ? context.ring_ : rings_[0];
  std::unique_lock lock(checkpointing_, std::defer_lock);
  if (all)
    lock.lock();
  else if (!lock.try_lock()) {
    context.next_slice_ = ring.tail() + ring.bytes() / 256;
    return;
  }
  if (core_.state() & Core::poisoned_bit) return;
  const std::uint64_t trigger = ring.head() + ring.bytes() / 4 * 3;
  if (!all && !checkpoint_->active() && ring.tail() < trigger) {
    // another thread's checkpoint has made room meanwhile
    context.next_slice_ = trigger;
    return;
  }
  // A quarter of the ring is left when it starts: paced to end with half of that to spare, and 512
  // pages take well under a millisecond.
  constexpr std::size_t most = 512;
  try {
    do {
      const std::size_t left = checkpoint_->pages_left();
      if (!slice_locked(context, all ? most : std::min<std::size_t>(most, left / 24 + 16))) break;
    } while (all);
  } catch (const std::bad_alloc&) {
    if (all) throw;
    // A commit's slice: the commit is done, and the next one tries again.
  }
  const std::size_t left = checkpoint_->pages_left();
  const std::uint64_t step =
      left > 24 * most ? ring.bytes() / 256 * (24 * most) / left : ring.bytes() / 256;
  context.next_slice_ =
      checkpoint_->active() ? ring.tail() + step : ring.head() + ring.bytes() / 4 * 3;
}

// Returns false when the checkpoint is finished (or the medium failed).
template <class Tm, Reproduce How>
bool Shadow<Tm, How>::slice_locked(Context& context, std::size_t pages) {
  // mutant: checkpoint-id-finished, checkpoint-id-durable
  if (!checkpoint_->active())
    checkpoint_->start(held_ ? tm_.domain.quiet_id() : persister_.durable());
  // pairs with the draw of an id
  const auto clock = [this] { return tm_.domain.clock.load(std::memory_order_acquire); };
  const auto step = checkpoint_->slice(context.tm_, pages, held_, clock, [this]() -> std::uint64_t {
    // held: a commit whose fence failed has poisoned the core before its writes could be copied;
    // nothing of it may reach home
    return !held_ ? persister_.durable() : core_.state() & Core::poisoned_bit ? 0 : 1;
  });
  // This thread's streams must be durable before the header says so; another thread may finish the
  // checkpoint.
  if (Status s = core_.medium.fence(); !s.ok()) return core_.poison(s), false;
  if (core_.state() & Core::poisoned_bit) return false;
  if (step == Checkpoint::Step::waiting)
    if (Status s = persister_.wait(checkpoint_->needs()); !s.ok()) return core_.poison(s), false;
  if (step != Checkpoint::Step::copied) return true;
  if (Status s = finish_checkpoint(); !s.ok()) core_.poison(s);
  return false;
}

template <class Tm, Reproduce How>
Status Shadow<Tm, How>::finish_checkpoint() {
  const std::uint64_t x = checkpoint_->x();
  std::vector<std::uint64_t> heads(ring_count_);
  // mutant: checkpoint-truncates-to-id
  for (std::uint32_t i = 0; i < ring_count_; ++i) heads[i] = rings_[i].position_after(x);
  // Home is durable (each slice fenced). X and the heads must be durable before a ring is reused: a
  // crash between would else find neither the record nor, in home, what it wrote.
  // mutant: checkpoint-truncates-before-header
  Status s = core_.publish([&](pool::Header& h) {
    h.applied = x;
    for (std::uint32_t i = 0; i < ring_count_; ++i) h.ring_head[i] = heads[i];
  });
  if (!s.ok()) return s;
  // mutant: checkpoint-truncates-before-header-late
  for (std::uint32_t i = 0; i < ring_count_; ++i) rings_[i].release(heads[i]);
  applied_.store(x, std::memory_order_relaxed);
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  checkpoint_->finished();
  return {};
}

// Between transactions.
template <class Tm, Reproduce How>
void Shadow<Tm, How>::evict() {
  if (core_.state() != 0) return;  // begin() says why
  const auto reproduced = [this] { return replay_->reproduced(); };
  while (paging_->full())
    // those in flight have it all
    if (!paging_->evict(reproduced, [this](std::uint64_t id) { return replay_up_to(id); }).value())
      return;
}

template <class Tm, Reproduce How>
Status Shadow<Tm, How>::replay_up_to(std::uint64_t id) {
  if (Status s = wait(id); !s.ok()) return s;
  while (replay_->reproduced() < id) {
    if (core_.state() & Core::poisoned_bit) return core_.why();
    // held: an id below is still on its way
    if (!replay_->apply(~std::uint64_t{0})) std::this_thread::yield();
  }
  return {};
}

template <class Tm, Reproduce How>
void Shadow<Tm, How>::make_room(Context& context, std::uint64_t bytes) {
  if (core_.state() != 0) core_.refuse();
  if (bytes == page_is_evicted) {
    // a transaction of more pages than the limit would else be stopped by each small one's eviction
    constexpr unsigned patience = 4;
    if (++context.page_restarts_ < patience) return paging_->wait();
    context.hold_ = paging_->hold();
    return;
  }
  if (bytes != 0 && allocate_log(context, bytes)) return;
  if (!held_) {
    if (Status s = persister_.wait(tm::last_id<Tm>(tm_)); !s.ok()) core_.poison(s);
    if (bytes == 0) return;  // the volatile log was full: it is empty now
    if constexpr (How == Reproduce::replay) {
      if (rings_[0].used() + persister_.outstanding() + bytes > rings_[0].bytes())
        replay_->settle();
      return;
    }
  }
  if constexpr (How == Reproduce::replay)
    if (context.ring_.used() + bytes > context.ring_.bytes()) replay_->settle();
  log::Ring& ring = held_ ? context.ring_ : rings_[0];
  if constexpr (How == Reproduce::checkpoint) {
    if (ring.used() + bytes > ring.bytes()) slice(context, true);
    // the first may have been the rest of an older one
    if (ring.used() + bytes > ring.bytes()) slice(context, true);
  }
  std::this_thread::yield();
}

// ALLOC-1: allocates the log's next `bytes`. False: they were allocated, and something else is
// lacking. Throws error(full) where the disk has no block left: the transaction was rolled back,
// and is not run again.
template <class Tm, Reproduce How>
bool Shadow<Tm, How>::allocate_log(Context& context, std::uint64_t bytes) {
  const std::uint64_t words = bytes / 8;  // more than the record's payload
  Status s;
  if (held_) {
    if (context.ring_.ready(bytes)) return false;
    s = context.ring_.prepare(bytes);
  } else if (stamps || !persister_.promises()) {
    if (context.allowance_ >= persister_.bytes_for(words)) return false;
    s = persister_.allow(words, context.allowance_);
  } else {
    if (!persister_.lacks_blocks(words)) return false;
    s = persister_.prepare(words);
  }
  if (s.ok()) return true;
  context.let_pages_go();
  throw error(s);
}

template <class Tm, Reproduce How>
Status Shadow<Tm, How>::checkpoint() {
  if (core_.state() != 0) return core_.why();
  if (!held_)
    if (Status s = wait(tm::last_id<Tm>(tm_)); !s.ok()) return s;
  if constexpr (How == Reproduce::replay) {
    const std::uint64_t id = last_recorded();
    while (replay_->applied() < id) {
      if (core_.state() & Core::poisoned_bit) return core_.why();
      if (!replay_->settle()) std::this_thread::yield();  // held: an id below is still on its way
    }
  } else {
    Context& c = context();
    const std::lock_guard lock(checkpointing_);
    if (checkpoint_->active())
      while (slice_locked(c, 4096)) {}
    while (slice_locked(c, 4096)) {}
  }
  return core_.why();
}

template <class Tm, Reproduce How>
Status Shadow<Tm, How>::close() {
  if (core_.file.read_only()) {
    core_.closed();
    return {};
  }
  // the background thread is the parent's
  if ((core_.state() & Core::forked_bit) != 0) return core_.why();
  // mutant: close-checkpoints
  Status s = checkpoint();
  background_.stop();
  if (s.ok()) {
    Core::show_stats(*this);
    // Everything is home and durable: the clean mark may be written.
    s = core_.file.close_clean(last_recorded());
  }
  core_.closed();
  return s;
}

// What goes wrong in a thread that nobody waits for is told to the next caller.
template <class Tm, Reproduce How>
void Shadow<Tm, How>::background() {
  try {
    work();
  } catch (const error& e) {
    core_.poison(e.status());
  } catch (const std::bad_alloc&) {
    core_.poison(failure(Code::out_of_memory, core_.file.path(),
                         "not enough memory for the thread that persists and replays"));
  }
}

// Persists what nobody waits for. A group that is not full is left until none has come for some
// milliseconds, or for a second or two in all; in naps, not by a clock, so that a run under a
// scheduler can be repeated. Returns whether more may be there at once.
template <class Tm, Reproduce How>
bool Shadow<Tm, How>::persist(std::chrono::microseconds nap) {
  // they get longer, up to 5 ms
  constexpr unsigned most_naps = 400;
  // of 40 to 140 cycles; counted, as naps are
  constexpr std::uint64_t small_group = 16 << 10, most_pauses = 1000, pauses = 25;
  if (persister_.waiting() == 0) group_naps_ = idle_naps_ = 0;
  const bool whole = idle_naps_ == 0 && group_naps_ < most_naps;
  const std::uint64_t bytes = persister_.bytes_written(), transactions = persister_.recorded();
  const auto outcome = persister_.step(whole);
  ++group_naps_;
  // Who looks at a volatile log all the time takes the lines that its thread is about to store to:
  // where transactions are short, that costs them half of their throughput. So a small group of
  // many is followed by a pause of some microseconds.
  if (outcome == log::Persister::Outcome::wrote && persister_.bytes_written() - bytes < small_group)
    for (std::uint64_t i = std::min(most_pauses, pauses * (persister_.recorded() - transactions));
         i > 0; --i)
      __builtin_ia32_pause();
  idle_naps_ = outcome == log::Persister::Outcome::nothing && nap >= long_nap ? idle_naps_ + 1 : 0;
  return outcome == log::Persister::Outcome::wrote;
}

// A slice at a time: Persist, for which somebody may wait, is not to wait for long. Home is settled
// when a good part of a ring waits for it, so that many stores share a line's write-back, and
// fences and header; or when nothing has come for some milliseconds. Returns whether more may be
// there at once.
template <class Tm, Reproduce How>
bool Shadow<Tm, How>::reproduce(std::chrono::microseconds nap) {
  std::uint64_t used = 0, fullest = 0;
  for (std::uint32_t i = 0; i < ring_count_; ++i) {
    used += rings_[i].used();
    fullest = std::max(fullest, rings_[i].used());
  }
  if (used == 0) return false;
  const bool idle = nap >= long_nap;
  const std::uint64_t ring = rings_[0].bytes(),
                      slice = core_.config.fence_is_sync
                                  ? ring / 8
                                  : std::min<std::uint64_t>(8 << 10, ring / 16);
  bool did = false;
  if (idle || fullest > ring / 8) did = replay_->apply(idle ? ~std::uint64_t{0} : slice);
  return replay_->settle_slice(idle || replay_->unsettled() > ring / 8 * 3) || did;
}

// Whether nothing is left that the background thread has to do. While it sleeps (BG-1), each of
// these changes only with a notify() afterwards.
template <class Tm, Reproduce How>
bool Shadow<Tm, How>::nothing_to_do() const noexcept {
  if (core_.poisoned()) return true;
  // Without a commit that waits for nobody, those that wait persist; replay follows when they have.
  const bool persists = async_seen_.load(std::memory_order_relaxed) || (replay_ && !held_);
  if (persists && persister_.durable() < tm::last_id<Tm>(tm_)) return false;
  if constexpr (How == Reproduce::checkpoint) return !log_is_half_full();
  for (std::uint32_t i = 0; i < ring_count_; ++i)
    if (rings_[i].used() != 0) return false;  // not yet replayed, or not yet checkpointed
  return true;
}

template <class Tm, Reproduce How>
void Shadow<Tm, How>::work() {
  using std::chrono::microseconds;
  constexpr microseconds first_nap(50), longest_nap(5000);
  microseconds nap = first_nap;
  auto shown = std::chrono::steady_clock::now();
  for (;;) {
    bool did = false;
    if (async_seen_.load(std::memory_order_relaxed)) {
      did = persist(nap);
      if (!persister_.status().ok()) core_.poison(persister_.status());
    }
    if constexpr (How == Reproduce::replay) {
      did |= reproduce(nap);
    } else if (log_is_half_full()) {
      try {
        slice(context(), true);
        did = true;
      } catch (const std::bad_alloc&) {  // after a nap
      }
    }
    if (core_.poisoned()) did = false;
    // Not at once: where commits come every few milliseconds, each would have to wake the thread.
    const bool sleepy = !did && nap >= long_nap && nothing_to_do();
    // for `perdure stat`
    if (const auto now = std::chrono::steady_clock::now();
        sleepy || now - shown >= std::chrono::milliseconds(20)) {
      shown = now;
      Core::show_stats(*this);
    }
    if (did) {
      nap = first_nap;
      if (background_.stopping()) return;
    } else if (sleepy) {
      if (!background_.sleep([this] { return nothing_to_do(); })) return;
      nap = first_nap;
    } else {
      if (!background_.nap(nap)) return;
      if (nap < longest_nap) nap *= 2;
    }
  }
}

// With stamps: what was durable when home had all that was recorded.
template <class Tm, Reproduce How>
std::uint64_t Shadow<Tm, How>::applied_id() noexcept {
  if (replay_ && !stamps) return replay_->applied();
  std::uint64_t id = applied_.load(std::memory_order_relaxed);
  if (!replay_ || !stamps) return id;
  const std::uint64_t durable = persister_.durable();  // first: what it covers is recorded by now
  if (replay_->applied() < persister_.recorded()) return id;
  while (id < durable && !applied_.compare_exchange_weak(id, durable, std::memory_order_relaxed)) {}
  return std::max(id, durable);
}

template <class Tm, Reproduce How>
Stats Shadow<Tm, How>::stats() {
  Stats s;
  core_.fill(s);
  s.last_id = tm::last_id<Tm>(tm_);
  s.durable_id = durable_id();
  s.applied_id = applied_id();
  if (!core_.file.read_only())
    for (std::uint32_t i = 0; i < ring_count_; ++i) s.log_used += rings_[i].used();
  s.shadow_pages = paging_ ? paging_->copies() : 0;
  s.paged_by_software = paging_ && paging_->frames() != nullptr;
  s.evictions = paging_ ? paging_->evictions() : 0;
  s.log_came = persister_.bytes_came();
  s.log_combined = persister_.bytes_combined();
  s.log_written = persister_.bytes_written();
  s.checkpoints = replay_ ? replay_->rounds() : checkpoints_.load(std::memory_order_relaxed);
  if (checkpoint_) s.checkpoint_lines = checkpoint_->lines();
  if constexpr (stamps) {
    s.aborts += tm_.unseen_aborts();
    s.without_lock = tm_.committed();
  }
  if constexpr (requires { tm_.grants; }) {
    s.bias_grants = tm_.grants.load(std::memory_order_relaxed);
    s.bias_revocations = tm_.revocations.load(std::memory_order_relaxed);
  }
  return s;
}

}  // namespace perdure::engine::shadow
