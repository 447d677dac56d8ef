// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that share a ring: what one of them appends, aborts or truncates does not affect the
// others.
#include <atomic>

#include "tests/engine/threads.hpp"

namespace perdure::test {
namespace {

class SharedRing : public EngineTest {};
ENGINE_SUITE(SharedRing, durable_isolating_ones);

// Three threads, two rings. One has stored and not committed; another one on its ring aborts; the
// third commits and makes a checkpoint. After a kill the first one's stores must be gone.
TEST_P(SharedRing, TruncationKeepsTheRecordsOfATransactionInProgress) {
  if (GetParam().tm == "global_lock") {
    GTEST_SKIP() << "one writer at a time";
  } else {
    Shape shape;
    shape.threads = 2;
    auto rig = open_rig<Root>(GetParam(), shape);
    // this thread's ring is the first
    rig.pool.update([](auto& tx, Root& r) { tx(r.word[100]) = 1; });
    std::atomic<int> stage{0};
    std::thread first([&] {
      bool once = true;
      rig.pool.update([&](auto& tx, Root& r) {
        tx(r.word[0]) = 7;
        if (!once) return;
        once = false;
        stage = 1;
        while (stage != 3) std::this_thread::yield();
      });
    });
    while (stage != 1) std::this_thread::yield();
    if (GetParam().tm == "stm") {  // a biased TM would wait for the first
      std::thread second([&] {
        struct Oops {};
        try {
          rig.pool.update([](auto&, Root&) { throw Oops(); });
        } catch (const Oops&) {}
      });
      second.join();
      for (int i = 0; i < 5; ++i) rig.pool.update([](auto& tx, Root& r) { ++tx(r.word[100]); });
      if (is_undo(GetParam())) rig.pool.checkpoint();  // others wait for the line
      const Recovered r = recover(GetParam(), rig.medium->current_image(), shape);
      EXPECT_TRUE(r.status.ok()) << r.status.message();
      std::uint64_t words[101];
      std::memcpy(words, r.state.root.data(), sizeof words);
      EXPECT_EQ(0U, words[0]) << "a transaction that never committed";
      EXPECT_EQ(6U, words[100]);
    }
    stage = 3;
    first.join();
  }
}

// Nothing but aborting transactions: they need log space, and no commit ever releases any.
TEST_P(SharedRing, AbortsAloneNeverFillALog) {
  Shape shape;
  shape.ring_bytes = ring_of_at_least(GetParam(), 8192);
  auto rig = open_rig<Root>(GetParam(), shape);
  struct Oops {};
  for (unsigned i = 0; i < 1000 / scale; ++i)
    EXPECT_THROW(rig.pool.update([&](auto& tx, Root& r) {
      for (std::size_t w = 0; w < 12; ++w) tx(r.word[w * 8]) = i;
      throw Oops();
    }),
                 Oops);
  EXPECT_EQ(1U, rig.pool.update([](auto& tx, Root& r) { return ++tx(r.total); }).value());
}

}  // namespace
}  // namespace perdure::test
