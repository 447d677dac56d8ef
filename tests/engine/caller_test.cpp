// SPDX-License-Identifier: BSD-3-Clause
//
// Engines without isolation of their own: the caller separates the words of its threads, but not
// their lines.
#include <atomic>

#include "tests/engine/threads.hpp"

namespace perdure::test {
namespace {

std::vector<EngineInfo> caller_isolates() {
  return engines_that([](const EngineInfo& e) { return !isolates(e) && is_durable(e); });
}

class Caller : public EngineTest {};
ENGINE_SUITE(Caller, caller_isolates);

TEST_P(Caller, ThreadsThatShareNoWordShareLines) {
  Shape shape;
  shape.threads = 3;
  auto rig = open_rig<Root>(GetParam(), shape);
  const unsigned each = 3000 / scale / heavy(GetParam());
  std::atomic<bool> stop{false};
  std::thread checkpointer([&] {
    while (!stop) {
      rig.pool.checkpoint();
      std::this_thread::yield();
    }
  });
  in_threads(4, [&](int t) {
    for (unsigned i = 0; i < each; ++i)
      rig.pool.update([&](auto& tx, Root& r) {
        for (std::size_t w = static_cast<std::size_t>(t); w < 32; w += 4) ++tx(r.word[w]);
      });
  });
  stop = true;
  checkpointer.join();
  const Recovered r = recover(GetParam(), rig.medium->durable_image(), shape);
  ASSERT_TRUE(r.status.ok()) << r.status.message();
  std::uint64_t words[32];
  std::memcpy(words, r.state.root.data(), sizeof words);
  for (const std::uint64_t w : words) EXPECT_EQ(each, w);
}

// One transaction has committed its word, the other one, in the same line, has not: recovery rolls
// back that one word and no more.
TEST_P(Caller, ARollbackAtRecoveryTakesNothingOfANeighbourInTheLine) {
  Shape shape;
  shape.threads = 3;
  auto rig = open_rig<Root>(GetParam(), shape);
  std::atomic<int> stage{0};
  std::thread open([&] {
    rig.pool.update([&](auto& tx, Root& r) {
      tx(r.word[0]) = 1;
      stage = 1;
      while (stage != 2) std::this_thread::yield();
      tx(r.word[2]) = 3;
      stage = 3;
      while (stage != 4) std::this_thread::yield();
    });
  });
  while (stage != 1) std::this_thread::yield();
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[1]) = 2; });
  stage = 2;
  while (stage != 3) std::this_thread::yield();
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[3]) = 4; });
  for (const auto& image : {rig.medium->durable_image(), rig.medium->current_image()}) {
    const Recovered r = recover(GetParam(), image, shape);
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    std::uint64_t words[4];
    std::memcpy(words, r.state.root.data(), sizeof words);
    EXPECT_EQ(0U, words[0]);
    EXPECT_EQ(2U, words[1]) << "an acknowledged word was taken back with its neighbour's";
    EXPECT_EQ(0U, words[2]);
    EXPECT_EQ(4U, words[3]);
  }
  stage = 4;
  open.join();
}

// Blocks that an aborting transaction had allocated become available to others only after its old
// values are written back: those would overwrite what others stored there.
TEST_P(Caller, AnAbortStoresIntoNoBlockOfAnother) {
  Shape shape;
  shape.threads = 3;
  shape.ring_bytes = 256 << 10;
  auto rig = open_rig<Root>(GetParam(), shape);
  constexpr std::uint64_t bytes = 70000;  // large: it is freed at once, for all threads
  constexpr std::size_t words = 512;
  std::atomic<bool> stop{false};
  struct Oops {};
  std::thread gives_up([&] {
    const std::vector<std::uint64_t> mine(words, 0xaaaa);
    while (!stop) {
      EXPECT_THROW(rig.pool.update([&](auto& tx, Root&) {
        tx.write_bytes(tx.alloc(bytes), mine.data(), words * 8);
        throw Oops();
      }),
                   Oops);
    }
  });
  unsigned wrong = 0;
  for (unsigned i = 0; i < 400 / scale; ++i) {
    const std::vector<std::uint64_t> mine(words, i);
    std::byte* block = nullptr;
    rig.pool.update([&](auto& tx, Root& r) {
      block = tx.alloc(bytes);
      tx.write_bytes(block, mine.data(), words * 8);
      tx(r.slot[0]) = reinterpret_cast<std::uint64_t*>(block);
    });
    std::vector<std::uint64_t> seen(words);
    std::this_thread::yield();
    rig.pool.view([&](auto& tx, const Root&) { tx.read_bytes(seen.data(), block, words * 8); });
    if (seen != mine) ++wrong;
    rig.pool.update([&](auto& tx, Root& r) {
      tx.free(block);
      tx(r.slot[0]) = nullptr;
    });
  }
  stop = true;
  gives_up.join();
  EXPECT_EQ(0U, wrong);
  const CheckReport check = rig.pool.check();
  EXPECT_TRUE(check.ok()) << check.problems.front();
}

}  // namespace
}  // namespace perdure::test
