// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/reader_gate.hpp"

#include <thread>

namespace perdure::engine::shadow {

std::unique_ptr<ReaderGate> ReaderGate::of_session(pool::OpenPool& file,
                                                   std::chrono::milliseconds patience,
                                                   std::uint64_t checkpoint_id,
                                                   std::uint64_t durable_id) {
  pool::ReaderWords* const words = file.reader_words();
  if (words == nullptr) return nullptr;
  // Relaxed: serve_readers() comes later.
  words->home_clock.store(checkpoint_id, std::memory_order_relaxed);
  words->checkpoint_id.store(checkpoint_id, std::memory_order_relaxed);
  words->durable_id.store(durable_id, std::memory_order_relaxed);
  return std::make_unique<ReaderGate>(
      *words, patience,
      World{[&file](std::uint64_t from, std::uint64_t to) { return file.follower_in(from, to); },
            [] { return std::chrono::steady_clock::now(); },
            [](std::chrono::microseconds time) { std::this_thread::sleep_for(time); }});
}

void ReaderGate::pass(std::uint64_t id) {
  if (words_.home_clock.load(std::memory_order_relaxed) >= id) return;
  if (patience_.count() > 0 && world_.reader_in(expelled_below_, id)) {
    waits_.fetch_add(1, std::memory_order_relaxed);
    const auto end = world_.now() + patience_;
    bool behind = true;
    while (behind && world_.now() < end) {
      world_.nap(std::chrono::microseconds(100));
      behind = world_.reader_in(expelled_below_, id);
    }
    if (behind) {
      expelled_.fetch_add(1, std::memory_order_relaxed);
      // mutant: gate-expels
      expelled_below_ = id;
    }
  }
  // READER-1. An exchange, because streamed lines may pass a plain store. Pairs with the reader's
  // acquire, behind its load of the data.
  // mutant: home-clock-first
  words_.home_clock.exchange(id, std::memory_order_seq_cst);
}

}  // namespace perdure::engine::shadow
