// SPDX-License-Identifier: BSD-3-Clause
//
// RedoEngine's parts that are off the hot path; compiled once per instance (instances.cpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <new>

#include "perdure/engine/redo_engine.hpp"

namespace perdure::engine {

template <class Derived, class Tm, class Writer>
RedoEngine<Derived, Tm, Writer>::RedoEngine(pool::OpenPool& file, const Config& config,
                                            const Recovery& recovery, std::uint64_t start)
    : core_(file, config, recovery),
      tm_(start),
      strict_(file.header().order == pool::CommitOrder::strict) {
  core_.views_in(tm_.domain);
  const pool::Header& header = file.header();
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    log::Ring& ring = rings_.add();
    if (file.read_only()) continue;
    auto map = core_.medium.map_ring(pool::ring_offset(header, i), header.ring_bytes);
    ring.configure(core_.medium, map.value(), log::ring_seed(header.uuid, header.epoch, i));
  }
  if (!strict_)
    writer_.configure(rings_[0], header.checkpoint_id, max_group,
                      file.read_only() ? 64 : core_.medium.append_unit());
}

template <class Derived, class Tm, class Writer>
Status RedoEngine<Derived, Tm, Writer>::wait(std::uint64_t id) {
  if (strict_) return {};  // in the strict order an id is returned after its fence
  if (writer_.durable() >= id) return {};
  Status status = writer_.wait(id);
  if (status.ok()) return status;
  core_.poison(status);
  return core_.why();
}

template <class Derived, class Tm, class Writer>
log::LogCursor RedoEngine<Derived, Tm, Writer>::Followed::cursor() const {
  log::LogCursor result;
  const ThreadLogs<log::Ring>& rings = engine_.rings_;
  for (std::size_t i = 0; i < rings.size(); ++i) result.add(rings[i], rings[i].head());
  return result;
}

template <class Derived, class Tm, class Writer>
void RedoEngine<Derived, Tm, Writer>::commit_waits_for_nobody(std::uint64_t id) {
  if (__builtin_expect(!async_seen_.load(std::memory_order_relaxed), 0))
    async_seen_.store(true, std::memory_order_relaxed);
  if (__builtin_expect(!background_.notify(), 0)) self().wait(id).or_throw();
}

template <class Derived, class Tm, class Writer>
bool RedoEngine<Derived, Tm, Writer>::allocate_log(log::Ring& ring, std::uint64_t bytes) {
  Status s;
  if (strict_) {
    if (ring.ready(bytes)) return false;
    s = ring.prepare(bytes);
  } else {
    const std::uint64_t words = bytes / 8;  // this is more than the record's payload
    if (!writer_.lacks_blocks(words)) return false;
    s = writer_.prepare(words);
  }
  if (!s.ok()) throw error(s);
  return true;
}

template <class Derived, class Tm, class Writer>
Status RedoEngine<Derived, Tm, Writer>::close() {
  if (core_.file.read_only()) {
    core_.closed();
    return {};
  }
  // In the child of a fork() the background thread is the parent's.
  if ((core_.state() & EngineBase::forked_bit) != 0) return core_.why();
  // mutant: close-checkpoints
  Status s = self().checkpoint();
  background_.stop();
  if constexpr (requires { self().stop_second_thread(); }) self().stop_second_thread();
  // mutant: close-finishes-followers
  if (s.ok()) s = followed_.before_close.call(self().last_recorded());
  if (s.ok()) {
    EngineBase::show_stats(self());
    // The data region holds everything, durably: the clean mark may be written.
    s = core_.file.close_clean(self().last_recorded());
  }
  core_.closed();
  return s;
}

// No thread waits for this one, so the next caller gets the error of what goes wrong here.
template <class Derived, class Tm, class Writer>
template <class F>
void RedoEngine<Derived, Tm, Writer>::guarded(F&& f) noexcept {
  try {
    f();
  } catch (const error& e) {
    core_.poison(e.status());
  } catch (const std::bad_alloc&) {
    core_.poison(failure(Code::out_of_memory, core_.file.path(),
                         "not enough memory for the thread that persists and replays"));
  }
}

template <class Derived, class Tm, class Writer>
bool RedoEngine<Derived, Tm, Writer>::persist(std::chrono::microseconds /*nap*/) {
  const std::uint64_t bytes = writer_.bytes_written(), transactions = writer_.recorded();
  if (writer_.step() != log::LogWriter::Outcome::wrote) return false;
  pause_after(bytes, transactions);
  return true;
}

// A thread that polls a volatile log takes the lines that the log's thread is about to store to.
// Where transactions are short, that costs them half of their throughput. So a record of less than
// 16 KiB is followed by a pause: 25 pause instructions (of 40 to 140 cycles) per transaction, at
// most 1,000. They are counted, as naps are, so that a run under a scheduler can be repeated.
template <class Derived, class Tm, class Writer>
void RedoEngine<Derived, Tm, Writer>::pause_after(std::uint64_t bytes_before,
                                                  std::uint64_t transactions_before) {
  constexpr std::uint64_t small_group = 16 << 10, max_pauses = 1000, pauses = 25;
  if (writer_.bytes_written() - bytes_before >= small_group) return;
  for (std::uint64_t i = std::min(max_pauses, pauses * (writer_.recorded() - transactions_before));
       i > 0; --i)
    __builtin_ia32_pause();
}

template <class Derived, class Tm, class Writer>
bool RedoEngine<Derived, Tm, Writer>::nothing_to_do() const noexcept {
  if (core_.poisoned()) return true;
  // If no commit was asynchronous, the threads that wait write the log.
  if (self().persists_in_background() && writer_.durable() < tm::last_id<Tm>(tm_)) return false;
  return self().nothing_to_follow();
}

template <class Derived, class Tm, class Writer>
void RedoEngine<Derived, Tm, Writer>::work() {
  using std::chrono::microseconds;
  constexpr microseconds first_nap(50), longest_nap(5000);
  microseconds nap = first_nap;
  // A standing thread polls for some 0.1 ms before its first nap.
  constexpr unsigned max_polls = 4000;
  unsigned polls = 0;
  auto shown = std::chrono::steady_clock::now();
  for (;;) {
    bool did = false, follows = true;
    if constexpr (requires { self().second_thread_follows(); })
      follows = !self().second_thread_follows();
    if (!follows || async_seen_.load(std::memory_order_relaxed)) {
      did = self().persist(nap);
      if (!writer_.status().ok()) core_.poison(writer_.status());
    }
    if (follows) did |= self().follow_log(nap);
    if (core_.poisoned()) did = false;
    // Where a commit follows every few milliseconds, each would have to wake a thread that sleeps
    // at once.
    bool tired = nap >= long_nap;
    if constexpr (requires { self().sleeps_at_once(); }) tired |= self().sleeps_at_once();
    const bool sleepy = !did && tired && nothing_to_do();
    // `perdure stat` reads this.
    if (const auto now = std::chrono::steady_clock::now();
        sleepy || now - shown >= std::chrono::milliseconds(20)) {
      shown = now;
      EngineBase::show_stats(self());
    }
    if (did) {
      nap = first_nap;
      polls = 0;
      if (background_.stopping()) return;
    } else if (!follows && polls < max_polls) {
      ++polls;
      __builtin_ia32_pause();
    } else if (sleepy) {
      if (!background_.sleep([this] { return nothing_to_do(); })) return;
      nap = first_nap;
    } else {
      if (!background_.nap(nap)) return;
      if (nap < longest_nap) nap *= 2;
    }
  }
}

template <class Derived, class Tm, class Writer>
void RedoEngine<Derived, Tm, Writer>::fill(Stats& s) const {
  core_.fill(s);
  s.last_id = tm::last_id<Tm>(tm_);
  s.durable_id = durable_id();
  if (!core_.file.read_only())
    for (std::size_t i = 0; i < rings_.size(); ++i) s.log_used += rings_[i].used();
  s.log_bytes_out = writer_.bytes_written();
  if constexpr (requires { tm_.grants; }) {
    s.bias_grants = tm_.grants.load(std::memory_order_relaxed);
    s.bias_revocations = tm_.revocations.load(std::memory_order_relaxed);
  }
}

}  // namespace perdure::engine
