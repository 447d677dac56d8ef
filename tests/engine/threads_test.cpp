// SPDX-License-Identifier: BSD-3-Clause
//
// Engines with several threads: isolation of words and bytes, more threads than rings, checkpoints
// and growth during writes, blocks that move between threads, and the contents of the pool after it
// is closed and reopened.
#include <atomic>

#include "perdure/pool/heap.hpp"
#include "tests/engine/threads.hpp"

namespace perdure::test {
namespace {

class Threads : public EngineTest {
 public:
  /// Closes the pool, opens its durable image again, and runs f on it.
  template <class F>
  static void reopen(Rig<Root>& rig, const Shape& shape, F&& f) {
    if (is_durable(GetParam())) {
      EXPECT_TRUE(rig.pool.close().clean);
      Shape again = shape;
      const auto image = rig.medium->durable_image();
      again.data_bytes = image.size() - shape.medium().log_bytes;
      { auto gone = std::move(rig.pool); }
      auto second = open_rig<Root>(GetParam(), again, image);
      EXPECT_EQ(0U, second.pool.stats().recovery.records) << "a clean pool has nothing to recover";
      f(second.pool);
      const CheckReport check = second.pool.check();
      EXPECT_TRUE(check.ok()) << check.problems.front();
    }
  }
};
ENGINE_SUITE(Threads, isolating_ones);

TEST_P(Threads, NeighbouringBytesAndWordsOfOneLineAreEachTheirOwn) {
  const Shape shape;
  auto rig = open_rig<Root>(GetParam(), shape);
  const unsigned each = 2000 / scale / heavy(GetParam());
  in_threads(4, [&](int t) {
    const auto me = static_cast<std::size_t>(t);
    for (unsigned i = 0; i < each; ++i)
      rig.pool.update([&](auto& tx, Root& r) {
        ++tx(r.byte[me]);
        ++tx(r.word[me]);
        ++tx(r.total);
      });
  });
  const auto check = [&](auto& pool) {
    pool.view([&](auto& tx, const Root& r) {
      for (std::size_t t = 0; t < 4; ++t) {
        EXPECT_EQ(static_cast<std::uint8_t>(each), tx(r.byte[t]));
        EXPECT_EQ(each, tx(r.word[t]));
      }
      EXPECT_EQ(4 * each, tx(r.total));
    });
  };
  check(rig.pool);
  EXPECT_EQ(4ULL * each, rig.pool.stats().commits);
  if (!has_timestamps(GetParam())) {
    EXPECT_EQ(4ULL * each, rig.pool.stats().last_id) << "ids are dense";
  }
  this->reopen(rig, shape, check);
}

TEST_P(Threads, MoreThreadsThanRings) {
  Shape shape;
  shape.threads = 2;
  auto rig = open_rig<Root>(GetParam(), shape);
  constexpr int threads = 9;
  const unsigned each = 400 / scale / heavy(GetParam());
  in_threads(threads, [&](int t) {
    std::mt19937_64 random(static_cast<std::uint64_t>(t));
    for (unsigned i = 0; i < each; ++i) {
      const std::size_t from = random() % 512, to = random() % 512;
      const std::uint64_t amount = random() % 100;
      rig.pool.update([&](auto& tx, Root& r) {
        tx(r.word[from]) -= amount;
        tx(r.word[to]) += amount;
        ++tx(r.total);
      });
    }
  });
  const auto check = [&](auto& pool) {
    pool.view([&](auto& tx, const Root& r) {
      std::uint64_t sum = 0;
      for (const auto& w : r.word) sum += tx(w);
      EXPECT_EQ(0U, sum);
      EXPECT_EQ(threads * each, tx(r.total));
    });
  };
  check(rig.pool);
  this->reopen(rig, shape, check);
}

// Blocks that one thread makes, another frees: allocation and free conflict only with transactions
// that access the slot.
TEST_P(Threads, BlocksMoveBetweenThreads) {
  Shape shape;
  shape.ring_bytes = 64 << 10;
  auto rig = open_rig<Root>(GetParam(), shape);
  const unsigned each = 2500 / scale / heavy(GetParam());
  std::atomic<unsigned> wrong{0};
  in_threads(4, [&](int t) {
    std::mt19937_64 random(static_cast<std::uint64_t>(t) + 5);
    for (unsigned i = 0; i < each; ++i) {
      const std::size_t s = random() % 64;
      const std::size_t bytes = 16 + random() % (i % 50 == 0 ? 9000 : 200);
      const bool fail = random() % 10 == 0;
      struct Oops {};
      try {
        rig.pool.update([&](auto& tx, Root& r) {
          auto& slot = r.slot[s];
          if (std::uint64_t* const block = tx(slot); block != nullptr) {
            std::uint64_t first;
            tx.read_bytes(&first, block, 8);
            if (first != s + 1000) ++wrong;
            tx.free(block);
            tx(slot) = nullptr;
          } else {
            auto* const fresh = reinterpret_cast<std::uint64_t*>(tx.alloc(bytes));
            const std::uint64_t first = s + 1000;
            tx.write_bytes(fresh, &first, 8);
            tx(slot) = fresh;
          }
          if (fail) {
            tx.free(tx.alloc(70000));  // large: its chunks become available to all threads
            throw Oops();
          }
        });
      } catch (const Oops&) {}
    }
  });
  EXPECT_EQ(0U, wrong);
  const CheckReport check = rig.pool.check();
  EXPECT_TRUE(check.ok()) << check.problems.front();
  this->reopen(rig, shape, [&](auto& pool) {
    pool.view([&](auto& tx, const Root& r) {
      for (std::size_t s = 0; s < 64; ++s)
        if (std::uint64_t* const block = tx(r.slot[s]); block != nullptr) {
          std::uint64_t first;
          tx.read_bytes(&first, block, 8);
          EXPECT_EQ(s + 1000, first);
        }
    });
  });
}

// The loop ends when enough has been done, not after a time: 3 writers and a thread that only makes
// checkpoints; the pool has what was acknowledged last, after a close and without one.
TEST_P(Threads, CheckpointsBesideWriters) {
  Shape shape;
  shape.threads = 3;
  shape.ring_bytes = ring_of_at_least(GetParam(), 32 << 10);
  auto rig = open_rig<Root>(GetParam(), shape);
  const unsigned each = 4000 / scale / heavy(GetParam());
  std::atomic<bool> stop{false};
  std::atomic<unsigned> checkpoints{0};
  std::thread checkpointer([&] {
    while (!stop) {
      rig.pool.checkpoint();
      ++checkpoints;
      std::this_thread::yield();
    }
  });
  std::array<std::array<std::uint64_t, 512>, 3> mine{};
  in_threads(3, [&](int t) {
    const auto me = static_cast<std::size_t>(t);
    std::mt19937_64 random(me);
    std::uint64_t seen = 0;
    for (unsigned i = 0; i < each; ++i) {
      const std::uint64_t now = rig.pool.header().checkpoint_id;  // the checkpointer writes it
      EXPECT_GE(now, seen);
      seen = now;
      const std::size_t n = 1 + random() % 6;
      std::array<std::pair<std::size_t, std::uint64_t>, 6> writes;
      // The words are interleaved: lines are shared.
      for (std::size_t k = 0; k < n; ++k) writes[k] = {random() % 170 * 3 + me, random()};
      rig.pool.update([&](auto& tx, Root& r) {
        for (std::size_t k = 0; k < n; ++k) tx(r.word[writes[k].first]) = writes[k].second;
      });
      for (std::size_t k = 0; k < n; ++k) mine[me][writes[k].first] = writes[k].second;
    }
  });
  while (checkpoints < 6) std::this_thread::yield();  // a fast writer may finish first
  stop = true;
  checkpointer.join();
  const auto check = [&](const std::uint64_t* words, const char* where) {
    for (std::size_t w = 0; w < 510; ++w)
      ASSERT_EQ(mine[w % 3][w], words[w]) << where << ", word " << w;
  };
  std::uint64_t words[512];
  const auto read = [&](auto& pool) {
    pool.view([&](auto& tx, const Root& r) {
      for (std::size_t w = 0; w < 512; ++w) words[w] = tx(r.word[w]);
    });
  };
  read(rig.pool);
  check(words, "open");
  if (is_durable(GetParam())) {
    const Recovered r = recover(GetParam(), rig.medium->durable_image(), shape);
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    std::memcpy(words, r.state.root.data(), sizeof words);
    check(words, "not closed");
  }
  this->reopen(rig, shape, [&](auto& pool) {
    read(pool);
    check(words, "reopened");
  });
}

TEST_P(Threads, ThePoolGrowsWhileTransactionsRun) {
  Shape shape;
  shape.data_bytes = 4 * pool::chunk_bytes;
  shape.max_data_bytes = 32 << 20;
  shape.ring_bytes = 64 << 10;
  auto rig = open_rig<Root>(GetParam(), shape);
  const std::uint64_t before = rig.pool.stats().data_bytes;
  std::atomic<bool> stop{false};
  std::atomic<unsigned> wrong{0};
  std::thread other([&] {  // transactions that need no growth continue, and so do checkpoints
    for (std::uint64_t i = 0; !stop; ++i) {
      rig.pool.update([&](auto& tx, Root& r) {
        tx(r.word[0]) = i;
        tx(r.word[64]) = i;
      });
      rig.pool.view(
          [&](auto& tx, const Root& r) { wrong += tx(r.word[0]) == tx(r.word[64]) ? 0 : 1; });
      if (i % 50 == 0) rig.pool.checkpoint();
    }
  });
  // Chains of blocks that need 12 MiB.
  in_threads(2, [&](int t) {
    const auto me = static_cast<std::size_t>(t);
    for (std::uint64_t i = 1; i <= 3000 / (scale > 1 ? 4 : 1); ++i)
      rig.pool.update([&](auto& tx, Root& r) {
        auto& head = r.slot[me];
        const std::uint64_t image[3] = {
            reinterpret_cast<std::uintptr_t>(static_cast<std::uint64_t*>(tx(head))), i, ~i};
        auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(2000));
        tx.write_bytes(block, image, sizeof image);
        tx(head) = block;
      });
  });
  stop = true;
  other.join();
  EXPECT_EQ(0U, wrong);
  EXPECT_GT(rig.pool.stats().data_bytes, before);
  const auto walk = [&](auto& pool) {
    pool.view([&](auto& tx, const Root& r) {
      for (std::size_t me = 0; me < 2; ++me) {
        std::uint64_t expected = 3000 / (scale > 1 ? 4 : 1);
        for (const std::uint64_t* at = tx(r.slot[me]); at != nullptr; --expected) {
          std::uint64_t image[3];
          tx.read_bytes(image, at, sizeof image);
          ASSERT_EQ(expected, image[1]);
          ASSERT_EQ(~expected, image[2]);
          at = reinterpret_cast<const std::uint64_t*>(image[0]);
        }
        ASSERT_EQ(0U, expected);
      }
    });
  };
  walk(rig.pool);
  if (is_durable(GetParam())) {
    Shape grown = shape;
    const auto image = rig.medium->durable_image();
    const Recovered r = recover(GetParam(), image, grown);
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    EXPECT_TRUE(r.problems.empty());
    EXPECT_EQ(6000U / (scale > 1 ? 4 : 1), r.state.blocks.size());
    EXPECT_TRUE(rig.pool.close().clean);
  }
}

// A long view during writes sees one state, whatever is freed and reused meanwhile.
TEST_P(Threads, AViewSeesOneStateWhileItsBlocksAreFreedAndReused) {
  if (GetParam().tm == "global_lock") {
    GTEST_SKIP() << "a view keeps writers out";
  } else {
    Shape shape;
    shape.data_bytes = 5 * pool::chunk_bytes;  // full: what is freed is used next
    shape.max_data_bytes = 40 * pool::chunk_bytes;
    if (GetParam().family.starts_with("rewind-2l")) shape.ring_bytes = 1 << 20;  // 256 words
    auto rig = open_rig<Root>(GetParam(), shape);
    auto& pool = rig.pool;
    std::atomic<int> stage{0};
    for (const std::size_t bytes : {65537UL, 65536UL, 40000UL}) {
      // A large block, and blocks of spans that will be dissolved.
      pool.update([&](auto& tx, Root& r) {
        auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(bytes));
        std::uint64_t pattern[64];
        std::fill(pattern, pattern + 64, 0x1234);
        for (std::size_t at = 0; at < 2048; at += sizeof pattern)
          tx.write_bytes(reinterpret_cast<std::byte*>(block) + at, pattern, sizeof pattern);
        tx(r.slot[0]) = block;
      });
      stage = 0;
      std::thread reader([&] {
        bool first = true;
        pool.view([&](auto& tx, const Root& r) {
          const std::uint64_t* const block = tx(r.slot[0]);
          if (first) {
            first = false;
            stage = 1;
            while (stage != 2) std::this_thread::yield();
          }
          if (block == nullptr) return;  // a later state: the view ran again
          std::uint64_t got[256];
          tx.read_bytes(got, block, sizeof got);
          for (const std::uint64_t v : got)
            ASSERT_EQ(0x1234U, v) << "another structure's bytes, " << bytes << " bytes";
        });
      });
      while (stage != 1) std::this_thread::yield();
      std::atomic<bool> writing{false};
      std::thread writer([&] {
        writing = true;
        pool.update([&](auto& tx, Root& r) {
          tx.free(static_cast<std::uint64_t*>(tx(r.slot[0])));
          tx(r.slot[0]) = nullptr;
        });
        // Spans of many classes, whose bitmaps are zeroed where the block was.
        for (std::size_t s = 1; s < 60; ++s)
          pool.update([&](auto& tx, Root& r) {
            tx(r.slot[s]) = reinterpret_cast<std::uint64_t*>(tx.alloc(16 + s * 40));
          });
      });
      if (views_may_run_alone(GetParam())) {
        // It may have to wait for the view, which must not wait for it.
        while (!writing) std::this_thread::yield();
        stage = 2;
      }
      writer.join();
      stage = 2;
      reader.join();
      pool.update([&](auto& tx, Root& r) {
        for (auto& slot : r.slot)
          if (std::uint64_t* const block = tx(slot); block != nullptr) {
            tx.free(block);
            tx(slot) = nullptr;
          }
      });
    }
    print_hardware_commits(GetParam(), pool.stats());
    const CheckReport check = pool.check();
    EXPECT_TRUE(check.ok()) << check.problems.front();
  }
}

// A transaction that is doomed, but does not know it yet, has stored to a block that was freed
// meanwhile. Its rollback writes an old value back: not into memory that has since become the
// heap's own.
TEST_P(Threads, ADoomedWriterDoesNotScribbleOverTheHeap) {
  if (GetParam().tm == "stm") {
    Shape shape;
    shape.data_bytes = 5 * pool::chunk_bytes;
    shape.max_data_bytes = 40 * pool::chunk_bytes;
    auto rig = open_rig<Root>(GetParam(), shape);
    auto& pool = rig.pool;
    pool.update([&](auto& tx, Root& r) {
      auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(65537));
      const std::uint64_t ones[8] = {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL};
      tx.write_bytes(block, ones, sizeof ones);
      tx(r.slot[0]) = block;
    });
    std::atomic<int> stage{0};
    std::thread doomed([&] {
      bool first = true;
      pool.update([&](auto& tx, Root& r) {
        std::uint64_t* const block = tx(r.slot[0]);
        if (block == nullptr) return;
        if (!first) return;
        first = false;
        const std::uint64_t five = 5;
        tx.write_bytes(block, &five, 8);
        stage = 1;
        while (stage != 2) std::this_thread::yield();
      });
    });
    while (stage != 1) std::this_thread::yield();
    std::thread writer([&] {
      pool.update([&](auto& tx, Root& r) {
        tx.free(static_cast<std::uint64_t*>(tx(r.slot[0])));
        tx(r.slot[0]) = nullptr;
      });
      for (std::size_t s = 1; s < 60; ++s)
        pool.update([&](auto& tx, Root& r) {
          tx(r.slot[s]) = reinterpret_cast<std::uint64_t*>(tx.alloc(16 + s * 40));
        });
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stage = 2;
    doomed.join();
    writer.join();
    const CheckReport check = pool.check();
    EXPECT_TRUE(check.ok()) << check.problems.front();
    EXPECT_EQ(60U, check.blocks);
  }
}

// Transactions on two pools each, in opposite orders and under contention: a conflict on one pool
// is not taken for one on the other.
TEST_P(Threads, TransactionsOnTwoPoolsAtATime) {
  if (GetParam().tm == "global_lock") {
    GTEST_SKIP() << "one of the two would wait for the other, and that one for it";
  } else {
    const Shape shape;
    auto one = open_rig<Root>(GetParam(), shape);
    auto two = open_rig<Root>(GetParam(), shape);
    const unsigned each = 400 / scale / heavy(GetParam());
    one.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1000000; });
    std::atomic<bool> stop{false};
    std::thread disturber([&] {
      for (std::uint64_t i = 0; !stop; ++i)
        one.pool.update([&](auto& tx, Root& r) { tx(r.word[8]) = i; });
    });
    in_threads(2, [&](int) {
      for (unsigned i = 0; i < each; ++i)
        one.pool.update([&](auto& tx, Root& r) {
          tx(r.word[0]) -= 1;
          two.pool.update([&](auto& other, Root& s) {
            (void)static_cast<std::uint64_t>(tx(r.word[8]));
            other(s.word[0]) += 1;
          });
        });
    });
    stop = true;
    disturber.join();
    EXPECT_EQ(1000000 - 2 * each,
              one.pool.view([](auto& tx, const Root& r) { return tx(r.word[0]); }));
    // The inner one may commit more than once per outer commit: they are two transactions.
    EXPECT_GE(two.pool.view([](auto& tx, const Root& r) { return tx(r.word[0]); }), 2 * each);
  }
}

// A lambda that catches every exception does not commit a half of itself.
TEST_P(Threads, ALambdaThatSwallowsEverythingRunsAgain) {
  const Shape shape;
  auto rig = open_rig<Root>(GetParam(), shape);
  const unsigned each = 2000 / scale / heavy(GetParam());
  in_threads(3, [&](int) {
    for (unsigned i = 0; i < each; ++i)
      rig.pool.update([&](auto& tx, Root& r) {
        for (std::size_t w = 0; w < 3; ++w) {
          try {
            ++tx(r.word[w * 8]);
          } catch (...) {}
        }
      });
  });
  rig.pool.view([&](auto& tx, const Root& r) {
    for (std::size_t w = 0; w < 3; ++w) EXPECT_EQ(3ULL * each, tx(r.word[w * 8]));
  });
}

}  // namespace
}  // namespace perdure::test
