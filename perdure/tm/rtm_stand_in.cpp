// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/tm/rtm_stand_in.hpp"

#include "perdure/tm/none.hpp"
#include "perdure/tm/rtm.hpp"

namespace perdure::tm {

thread_local RtmStandIn::Try* RtmStandIn::Try::current = nullptr;

void RtmStandIn::leave() {
  if (Try::current != nullptr) Try::current->abort(Abort::not_here);
}

void RtmStandIn::Try::show(std::atomic<std::uint64_t>& a, std::uint64_t v) noexcept {
  empty_store_buffer();  // stores leave the buffer in their order
  shown_ = &a;
  shown_value_ = v;
  if (!limits_.store_buffer) empty_store_buffer();
  point();
}

void RtmStandIn::Try::empty_store_buffer() noexcept {
  if (shown_ == nullptr) return;
  shown_->store(shown_value_, std::memory_order_release);  // pairs with complete()
  shown_ = nullptr;
}

void RtmStandIn::Try::drain() noexcept {
  if (current == this && !limits_.drains_in_try) return;
  drain_store_buffer();  // the processor's real one
  empty_store_buffer();
  owns_late_ = false;
  point();
}

Abort RtmStandIn::Try::start() noexcept {
  point();
  for (int spins = 0;;) {
    // pairs with end() and let_in()
    const std::uint64_t now = shared_.sequence.load(std::memory_order_acquire);
    if (now % 2 == 0) {
      snapshot_ = now;
      current = this;
      return Abort::none;
    }
    if (held_.load(std::memory_order_relaxed)) {
      empty_store_buffer();
      return Abort::lock_held;
    }
    if (++spins > 100) std::this_thread::yield();
  }
}

// A lambda that swallows the Conflict gets it again: this snapshot never equals the sequence.
void RtmStandIn::Try::abort(Abort why) {
  if (cause_ == Abort::none) cause_ = why;
  snapshot_ = doomed;
  throw Conflict{this};
}

void RtmStandIn::Try::validate() {
  if (snapshot_ == doomed) abort(Abort::conflict);
  for (int spins = 0;;) {
    // pairs with end() and let_in()
    const std::uint64_t now = shared_.sequence.load(std::memory_order_acquire);
    if (now % 2 != 0) {
      if (held_.load(std::memory_order_relaxed)) abort(Abort::lock_held);
      if (++spins > 100) std::this_thread::yield();
      continue;
    }
    for (const Read& r : reads_)
      // An acquire: the sequence is read again after it.
      if (load_word(r.address) != r.value) abort(Abort::conflict);
    if (shared_.sequence.load(std::memory_order_relaxed) != now) continue;
    snapshot_ = now;
    return;
  }
}

void RtmStandIn::Try::touch_first(std::uint64_t line, std::uint64_t seen, std::uint64_t bit) {
  std::uint32_t& lines = bit == read_bit ? lines_read_ : lines_written_;
  if (lines == (bit == read_bit ? limits_.lines_read : limits_.lines_written))
    abort(Abort::capacity);
  lines_.reserve(1);
  lines_.put(line, seen | bit);
  ++lines;
}

void RtmStandIn::Try::put(std::uint64_t* a, std::uint64_t v) noexcept {
  if (const std::uint64_t* const place = writes_.find(address_of(a))) {
    stores_[*place].value = v;
    return;
  }
  writes_.put(address_of(a), stores_.size());  // within the space that keep() made
  stores_.push_back({a, v});
  --kept_;
}

void RtmStandIn::Try::last_point_of_failure(const Clock& clock) {
  if (limits_.store_buffer) {
    counter_ = clock.tick();
    owns_late_ = true;
    point();
  }
  std::uint64_t expected = snapshot_;
  // The acquire pairs with end(): earlier commits are seen. The release has no partner. A doomed
  // try never finds its snapshot.
  while (snapshot_ == doomed || !shared_.sequence.compare_exchange_strong(
                                    expected, snapshot_ + 1, std::memory_order_acq_rel)) {
    validate();
    expected = snapshot_;
  }
  committing_ = true;
  // Release stores: a thread that sees them sees the sequence odd.
  for (const Store& s : stores_) store_word(s.address, s.value);
}

// A later commit takes the sequence after this check and draws after that; an earlier one drew
// before.
std::uint64_t RtmStandIn::Try::time_of_reads(const Clock& clock) {
  for (;;) {
    const std::uint64_t now = clock.now();
    // pairs with end()
    if (shared_.sequence.load(std::memory_order_acquire) == snapshot_) return now;
    validate();
  }
}

void RtmStandIn::Try::end() noexcept {
  if (committing_) let_in();
  cancel();
  point();
}

void RtmStandIn::Try::cancel() noexcept {
  empty_store_buffer();  // the end of a transaction drains it
  committing_ = owns_late_ = false;
  current = nullptr;
  snapshot_ = doomed;
  reads_.clear();
  stores_.clear();
  writes_.clear();
  lines_.clear();
  kept_ = lines_read_ = lines_written_ = 0;
}

void RtmStandIn::Try::shut_out() noexcept {
  empty_store_buffer();  // a locked instruction took the lock, and drained the buffer
  for (int spins = 0;;) {
    std::uint64_t now = shared_.sequence.load(std::memory_order_relaxed) & ~std::uint64_t{1};
    // The acquire pairs with end().
    if (shared_.sequence.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) return;
    if (++spins > 100) std::this_thread::yield();
  }
}

static_assert(TransactionalMemory<Htm<Rtm>> && TransactionalMemory<Htm<RtmStandIn>>);
static_assert(!has_timestamps<None> && has_timestamps<Htm<Rtm>>);

}  // namespace perdure::tm
