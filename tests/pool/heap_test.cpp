// SPDX-License-Identifier: BSD-3-Clause
//
// The heap in use: compared with a model for random sizes, by one thread and by four; what it
// refuses; a full pool; what opening reads.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "heap_fixture.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

TEST_F(HeapTest, BlocksAreAlignedDistinctAndOfTheirSize) {
  open();
  std::map<std::uint64_t, std::uint64_t> taken;
  for (const std::uint64_t n : {0ULL, 1ULL, 16ULL, 17ULL, 64ULL, 65ULL, 128ULL, 192ULL, 320ULL,
                                4096ULL, 4097ULL, 65536ULL, 65537ULL, 300000ULL}) {
    for (int i = 0; i < 3; ++i) {
      const auto op = pool->heap().reserve(n);
      ASSERT_TRUE(op.ok()) << n << ": " << op.status().message();
      EXPECT_GE(op_bytes(*op), n);
      EXPECT_EQ(op->offset % (n > 0 && n % 64 == 0 ? 64 : 16), 0U) << n;
      EXPECT_TRUE(op->set);
      for (const auto& [offset, bytes] : taken)
        EXPECT_TRUE(op->offset + op_bytes(*op) <= offset || offset + bytes <= op->offset);
      taken[op->offset] = op_bytes(*op);
      // reserved, not allocated
      EXPECT_EQ(pool->heap().block_bytes(op->offset).code(), Code::invalid);
      user->commit(*op);
      EXPECT_EQ(*pool->heap().block_bytes(op->offset), op_bytes(*op));
    }
  }
  close();
}

TEST_F(HeapTest, ReleasedBlocksComeBackAndLeaveNoTrace) {
  open();
  const auto before = blocks();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto op = pool->heap().reserve(i % 2 == 0 ? 64 : 100000);
    ASSERT_TRUE(op.ok());
    seen.insert(op->offset);
    pool->heap().release(*op);
  }
  EXPECT_LE(seen.size(), 4U);
  EXPECT_EQ(blocks(), before);
  EXPECT_EQ(pool->heap().used_bytes(), 48U);
}

TEST_F(HeapTest, FreesThatAreRefused) {
  open();
  const std::uint64_t a = *user->allocate(100), big = *user->allocate(200000);
  for (const std::uint64_t bad :
       {std::uint64_t{0}, std::uint64_t{4096}, ~std::uint64_t{0}, a + 1, a + 16, a + 112, a - 112,
        big + 16, big + 65536, pool->data_bytes(), pool->header().root_offset,
        a / chunk_bytes * chunk_bytes, pool->data_bytes() - 65536}) {
    const auto op = pool->heap().prepare_free(bad);
    ASSERT_FALSE(op.ok()) << bad;
    EXPECT_EQ(op.code(), Code::invalid) << op.status().message();
  }
  for (const std::uint64_t block : {a, big}) {
    // Twice, while the first free is not yet committed.
    const auto first = pool->heap().prepare_free(block);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(pool->heap().prepare_free(block).code(), Code::busy);
    // an abort makes it possible again
    pool->heap().release(*first);
    const auto second = pool->heap().prepare_free(block);
    ASSERT_TRUE(second.ok());
    user->commit(*second);
    // Committed, not yet reusable.
    EXPECT_EQ(pool->heap().prepare_free(block).code(), Code::invalid);
    pool->heap().reusable(*second);
    EXPECT_EQ(pool->heap().prepare_free(block).code(), Code::invalid);
  }
  EXPECT_EQ(user->free(a).code(), Code::invalid);
  close();
}

// HEAP-2: between the commit of a free and reusable() no thread gets the block.
TEST_F(HeapTest, NotReusedBeforeItsFreeIsDurable) {
  open();
  const std::uint64_t a = *user->allocate(3000);
  const auto op = pool->heap().prepare_free(a);
  user->commit(*op);
  for (int i = 0; i < 500; ++i) {
    const auto b = pool->heap().reserve(3000);
    ASSERT_TRUE(b.ok());
    ASSERT_NE(b->offset, a);
  }
}

TEST_F(HeapTest, RandomAgainstAModelOverSessions) {
  std::mt19937_64 random(11);
  // offset -> bytes, pattern
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint8_t>> model;
  for (int session = 0; session < 6; ++session) {
    open(24 * MiB);
    if (model.empty()) model[pool->header().root_offset] = {48, 0};
    for (int i = 0; i < rounds_in(3000); ++i) {
      if (random() % 100 < (session % 2 == 0 ? 60U : 40U)) {
        const std::uint64_t bytes = std::uint64_t{1} << random() % 18;
        const std::uint64_t n = bytes + random() % bytes;
        const auto b = user->allocate(n);
        if (b.code() == Code::full) continue;
        ASSERT_TRUE(b.ok()) << b.status().message();
        const auto pattern = static_cast<std::uint8_t>(random());
        ASSERT_TRUE(model.emplace(*b, std::pair{n, pattern}).second);
        std::memset(pool->view() + *b, pattern, n);
      } else if (model.size() > 1) {
        auto it = model.lower_bound(random() % pool->data_bytes());
        if (it == model.end() || it->first == pool->header().root_offset) continue;
        const std::byte* const bytes = pool->view() + it->first;
        ASSERT_TRUE(std::all_of(bytes, bytes + it->second.first,
                                [&](std::byte b) { return b == std::byte{it->second.second}; }));
        ASSERT_TRUE(user->free(it->first).ok());
        model.erase(it);
      }
    }
    std::set<std::uint64_t> expected;
    for (const auto& [offset, what] : model) expected.insert(offset);
    EXPECT_EQ(blocks(), expected);
    close();
  }
}

TEST_F(HeapTest, FourThreadsAgainstAModel) {
  open(48 * MiB);
  std::mutex mutex;
  std::set<std::uint64_t> shared;  // blocks that any thread may free
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> full{0};
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      HeapUser mine(*pool);
      for (int i = 0; i < rounds_in(6000); ++i) {
        if (random() % 2 == 0) {
          const std::uint64_t n = std::uint64_t{8} << random() % 14;
          const auto b = mine.allocate(n);
          if (!b.ok()) {
            ASSERT_EQ(b.code(), Code::full) << b.status().message();
            ++full;
            continue;
          }
          std::memset(pool->view() + *b, static_cast<int>(t), n);
          const std::lock_guard lock(mutex);
          ASSERT_TRUE(shared.insert(*b).second);
        } else {
          std::uint64_t b = 0;
          {
            const std::lock_guard lock(mutex);
            if (shared.empty()) continue;
            auto it = shared.lower_bound(random() % pool->data_bytes());
            if (it == shared.end()) it = shared.begin();
            b = *it;
            shared.erase(it);
          }
          if (random() % 8 == 0) {  // it changes its mind
            const auto op = pool->heap().prepare_free(b);
            ASSERT_TRUE(op.ok());
            pool->heap().release(*op);
          }
          ASSERT_TRUE(mine.free(b).ok());
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  shared.insert(pool->header().root_offset);
  EXPECT_EQ(blocks(), shared);
  close();
}

// Two threads free one block at the same moment: one succeeds.
TEST_F(HeapTest, OneOfTwoSimultaneousFrees) {
  open();
  for (int round = 0; round < rounds_in(300); ++round) {
    const std::uint64_t b = *user->allocate(64);
    std::atomic<int> go{0}, succeeded{0};
    const auto attempt = [&] {
      ++go;
      while (go < 2) std::this_thread::yield();
      const auto op = pool->heap().prepare_free(b);
      if (op.ok()) ++succeeded;
    };
    std::thread other(attempt);
    attempt();
    other.join();
    ASSERT_EQ(succeeded, 1);
  }
}

// The first frees in a span after an opening: one thread builds the knowledge about it, the other
// must wait, or find all of it.
TEST_F(HeapTest, TwoThreadsOpenASpan) {
  open();
  std::vector<std::uint64_t> there;
  for (int i = 0; i < 4000; ++i) there.push_back(*user->allocate(16));
  for (int round = 0; round < rounds_in(150); ++round) {
    close();
    open();
    std::atomic<int> go{0}, refused{0};
    const auto attempt = [&](std::size_t which) {
      ++go;
      while (go < 2) {}
      const auto op = pool->heap().prepare_free(there[there.size() - which]);
      if (op.ok())
        pool->heap().release(*op);
      else
        ++refused;
    };
    std::thread other(attempt, 1);
    attempt(2);
    other.join();
    ASSERT_EQ(0, refused) << round;
  }
}

TEST_F(HeapTest, FullThenFreeWorks) {
  open();
  for (const std::uint64_t n : {64ULL, 4000ULL, 20000ULL, 60000ULL, 100000ULL, 16ULL}) {
    std::vector<std::uint64_t> all;
    for (;;) {
      const auto b = user->allocate(n);
      if (!b.ok()) {
        EXPECT_EQ(b.code(), Code::full) << b.status().message();
        EXPECT_NE(b.status().message().find("full"), std::string::npos) << b.status().message();
        break;
      }
      all.push_back(*b);
    }
    EXPECT_EQ(pool->data_bytes(), 4 * MiB);
    EXPECT_GT(all.size() * n, 2 * MiB) << n;
    // Freeing works, and what is freed can be allocated again, in this size.
    ASSERT_TRUE(user->free(all.back()).ok());
    const auto again = user->allocate(n);
    ASSERT_TRUE(again.ok()) << n << ": " << again.status().message();
    EXPECT_EQ(*again, all.back());
    for (const std::uint64_t b : all) ASSERT_TRUE(user->free(b).ok());
    // And in any other size: the next round.
  }
  EXPECT_EQ(pool->heap().used_bytes(), 48U);
  close();
}

TEST_F(HeapTest, MoreThanThePoolWillEverHold) {
  open();
  EXPECT_EQ(pool->heap().reserve(5 * MiB).code(), Code::full);
  EXPECT_EQ(pool->heap().reserve(~0ULL).code(), Code::full);
  EXPECT_EQ(pool->heap().reserve(4 * MiB).code(), Code::full);
  EXPECT_TRUE(user->allocate(3 * MiB).ok());
}

// A thread's cached blocks are not lost when it ends: the next owner of its slot uses them.
TEST_F(HeapTest, ThreadsThatEndLoseNothing) {
  open();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 200; ++i) {
    std::thread([&] {
      const auto op = pool->heap().reserve(1000);
      ASSERT_TRUE(op.ok());
      seen.insert(op->offset);
      pool->heap().release(*op);
    }).join();
  }
  EXPECT_LE(seen.size(), 16U);
  EXPECT_LE(pool->data_bytes(), 2 * MiB);
}

// Opening and the first allocations read a page of the directory and one or two spans, however
// large the pool is.
TEST_F(HeapTest, OpeningIsLazy) {
  std::vector<Heap::Looked> looked;
  for (const std::uint64_t size : {8 * MiB, 80 * MiB}) {
    std::filesystem::remove(scratch.path());
    open(256 * MiB);
    std::vector<std::uint64_t> some;
    while (pool->heap().used_bytes() < size) {
      const auto b = user->allocate(some.size() % 3 == 0 ? 30000 : 1000000);
      ASSERT_TRUE(b.ok()) << b.status().message();
      some.push_back(*b);
    }
    for (int i = 0; i < 40; ++i) some.push_back(*user->allocate(64));
    close();
    base = 0;
    open(256 * MiB);
    EXPECT_EQ(pool->heap().looked().directory_words, 0U);
    EXPECT_EQ(pool->heap().looked().spans, 0U);
    ASSERT_TRUE(user->free(some.back()).ok());
    EXPECT_EQ(pool->heap().looked().directory_words, 0U);
    EXPECT_EQ(pool->heap().looked().spans, 1U);
    ASSERT_TRUE(user->allocate(64).ok());
    ASSERT_TRUE(user->allocate(64).ok());
    looked.push_back(pool->heap().looked());
    close();
  }
  EXPECT_LE(looked[1].directory_words, 512U);
  EXPECT_LE(looked[1].spans, looked[0].spans + 1);
}

// A free beyond the cursor, then the cursor moves: no chunk is counted twice or lost.
TEST_F(HeapTest, FreesAheadOfTheCursor) {
  std::vector<std::uint64_t> large, little;
  open(200 * MiB);
  for (int i = 0; i < 250; ++i) {
    large.push_back(*user->allocate(3 * chunk_bytes));
    little.push_back(*user->allocate(50000));
  }
  close();
  open(200 * MiB);
  std::mt19937_64 random(5);
  std::set<std::uint64_t> expected(large.begin(), large.end());
  expected.insert(little.begin(), little.end());
  expected.insert(pool->header().root_offset);
  for (int i = 0; i < 200; ++i) {
    auto& from = i % 2 == 0 ? large : little;
    const std::size_t k = random() % from.size();
    ASSERT_TRUE(user->free(from[k]).ok());
    expected.erase(from[k]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(k));
  }
  for (int i = 0; i < 450; ++i) {
    const auto b = user->allocate(i % 3 == 0 ? 100000 : i % 3 == 1 ? 50000 : 200);
    ASSERT_TRUE(b.ok()) << b.status().message();
    ASSERT_TRUE(expected.insert(*b).second) << i;
  }
  EXPECT_EQ(blocks(), expected);
  close();
}

}  // namespace
}  // namespace perdure::pool
