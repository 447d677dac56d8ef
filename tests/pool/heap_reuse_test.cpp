// SPDX-License-Identifier: BSD-3-Clause
//
// Chunks of spans that were emptied in an earlier session: every size class can use them, opening
// does not search for them, a session reads each span at most once, and neither threads nor doomed
// transactions can break this.
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "heap_fixture.hpp"
#include "perdure/pool/heap_central.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

class HeapReuse : public HeapTest {
 protected:
  /// Allocates blocks of `bytes` until the pool is full.
  std::vector<std::uint64_t> fill(std::uint64_t bytes) {
    std::vector<std::uint64_t> all;
    for (;;) {
      const auto b = user->allocate(bytes);
      if (!b.ok()) {
        EXPECT_EQ(Code::full, b.code()) << b.status().message();
        return all;
      }
      all.push_back(*b);
    }
  }
  void free_all(const std::vector<std::uint64_t>& all) {
    for (const std::uint64_t b : all) ASSERT_TRUE(user->free(b).ok());
  }
  void reopen(std::uint64_t max) {
    close();
    base = 0;
    open(max);
  }
};

// What was emptied in the same session can always be used for anything.
TEST_F(HeapReuse, APoolEmptiedInAnEarlierSessionHoldsAsMuchAsOneEmptiedInThis) {
  constexpr std::uint64_t max = 16 * MiB;
  static constexpr std::uint64_t sizes[] = {1000, 60000, 16, 5000, 33000, 200000, 4096, 12000};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    const std::uint64_t before = sizes[i], after = sizes[(i + 1) % std::size(sizes)];
    std::size_t held[2];
    for (const bool reopened : {false, true}) {
      std::filesystem::remove(scratch.path());
      open(max);
      free_all(fill(before));
      if (reopened) reopen(max);
      held[reopened ? 1 : 0] = fill(after).size();
      EXPECT_EQ(max, pool->data_bytes());
      close();
    }
    EXPECT_EQ(held[0], held[1]) << after << " bytes after " << before;
  }
}

// Opening reads no span; the first allocation for which the pool would have to grow reads spans
// until it finds one.
TEST_F(HeapReuse, ASessionLooksAtEachSpanOnceWhenItNeedsChunks) {
  constexpr std::uint64_t max = 64 * MiB;
  open(max);
  std::vector<std::uint64_t> all, kept;
  // 15 per span of one chunk.
  while (pool->data_bytes() < 40 * MiB) all.push_back(*user->allocate(4000));
  const std::uint64_t data = pool->data_bytes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 45 != 0 && i % 45 != 15) {
      ASSERT_TRUE(user->free(all[i]).ok());  // of three spans two keep a block
    }
  }
  reopen(max);
  const std::uint64_t spans = all.size() / 15;
  EXPECT_EQ(0U, pool->heap().looked().bitmaps);
  ASSERT_TRUE(user->allocate(4000).ok());
  EXPECT_EQ(0U, pool->heap().looked().bitmaps);  // its own class has space
  // Blocks of another class: one span in three can be used, and then the pool grows.
  std::uint64_t taken = 0;
  while (pool->data_bytes() == data) {
    ASSERT_TRUE(user->allocate(1000).ok());
    ASSERT_LE(pool->heap().looked().bitmaps, spans + 1);
    ++taken;
    if (taken == 1) {
      EXPECT_LE(pool->heap().looked().bitmaps, 512U);  // per step
    }
  }
  EXPECT_GE(taken, (spans / 3 - 2) * 63) << "blocks of 1024 bytes, 63 in a span";
  EXPECT_GE(pool->heap().looked().bitmaps, spans - 2);
  // It never reads one again: not when it grows once more, nor when it is full.
  (void)fill(1000);
  EXPECT_LE(pool->heap().looked().bitmaps, spans + 1);
  close();
}

// A search would yield less than half of the region: a pool that fills up does not pay for it,
// until it can grow no more.
TEST_F(HeapReuse, APoolThatIsMoreThanHalfUsedGrowsWithoutASearch) {
  constexpr std::uint64_t max = 24 * MiB;
  open(max);
  std::vector<std::uint64_t> all;
  while (pool->data_bytes() < 16 * MiB) all.push_back(*user->allocate(4000));
  for (std::size_t i = 0; i < all.size() / 3; ++i) ASSERT_TRUE(user->free(all[i]).ok());
  reopen(max);
  const std::uint64_t data = pool->data_bytes();
  while (pool->data_bytes() == data) ASSERT_TRUE(user->allocate(1000).ok());
  EXPECT_EQ(0U, pool->heap().looked().bitmaps);
  (void)fill(1000);
  EXPECT_EQ(max, pool->data_bytes());
  EXPECT_GT(pool->heap().looked().bitmaps, 0U);
  EXPECT_GT(pool->heap().used_bytes(), (max - 2 * chunk_bytes) / 10 * 9);
  close();
}

// Large objects and spans beside each other, with holes of all lengths between them: holes that are
// not adjacent are not joined, adjacent ones are used as one.
TEST_F(HeapReuse, HolesBetweenLargeObjectsAndSpans) {
  constexpr std::uint64_t max = 8 * MiB;
  open(max);
  std::vector<std::uint64_t> large, little;
  for (;;) {
    const auto a = user->allocate(3 * chunk_bytes), b = user->allocate(60000);
    if (a.ok()) large.push_back(*a);
    if (b.ok()) little.push_back(*b);
    if (!a.ok() || !b.ok()) break;
  }
  free_all(little);
  reopen(max);
  for (std::size_t i = 0; i < large.size(); i += 2) ASSERT_TRUE(user->free(large[i]).ok());
  reopen(max);
  // All free chunks are used for blocks of one chunk's span.
  const std::uint64_t objects = max / chunk_bytes - first_chunk(max),
                      used = large.size() / 2 * 3 + 1;
  const std::size_t blocks = fill(4096).size();
  EXPECT_GE(blocks, (objects - used - 1) * 15);
  close();
}

// A doomed transaction frees a block of a span that was emptied and is now a large object. The
// directory still says "span" until the object's transaction commits, and the place of the bitmap
// may have any contents.
TEST_F(HeapReuse, AStaleFreeIntoAGivenUpSpan) {
  for (const bool earlier_session : {false, true}) {
    std::filesystem::remove(scratch.path());
    base = 0;
    open(4 * MiB);
    const auto all = fill(4000);
    free_all(all);
    if (earlier_session) reopen(4 * MiB);
    const auto large = pool->heap().reserve(3 * MiB);
    ASSERT_TRUE(large.ok()) << large.status().message();
    // The stores of a transaction that has not committed.
    std::memset(pool->view() + large->offset, 0xff, 3 * MiB);
    std::size_t inside = 0;
    for (const std::uint64_t b : all) {
      if (b < large->offset || b >= large->offset + 3 * MiB) continue;
      ++inside;
      EXPECT_EQ(Code::invalid, pool->heap().prepare_free(b).code());
    }
    EXPECT_GT(inside, 100U);
    std::memset(pool->view() + large->offset, 0, 3 * MiB);  // it is rolled back
    pool->heap().release(*large);
    EXPECT_GE(fill(1000).size() * 1024, 3 * MiB);
    const auto found = blocks();
    // And the root: no block was allocated twice.
    EXPECT_EQ(found.size(), pool->heap().used_bytes() / 1024 + 1);
    close();
  }
}

// A stale free of a large object whose chunks are now a span leaves the span alone.
TEST_F(HeapReuse, AStaleFreeOfALargeObject) {
  open();
  auto central = std::make_unique<Central>(pool->view(), pool->header().max_data_bytes,
                                           [](std::uint64_t, std::uint64_t) { return Status(); });
  const std::uint64_t data = pool->data_bytes(), chunk = central->take_chunks(2, data);
  ASSERT_NE(0U, chunk);
  ASSERT_TRUE(central->mark_large(chunk, 2, true));
  EXPECT_FALSE(central->mark_large(chunk, 2, true));  // it belongs to another one
  central->give_chunks(chunk, 2);
  EXPECT_FALSE(central->mark_large(chunk, 2, true));
  const std::uint32_t cls = size_class(4000);  // a span has one chunk
  std::uint64_t block = 0;
  while (central->span_at(chunk) == nullptr)
    ASSERT_EQ(1U, central->take_blocks(cls, 1, &block, data));
  Span* const span = central->span_at(chunk);
  EXPECT_FALSE(central->mark_large(chunk, 2, true));
  EXPECT_EQ(span, central->span_at(chunk));
  EXPECT_FALSE(central->mark_large(chunk, 2, false));
  EXPECT_EQ(span, central->span_at(chunk));
}

// Four threads in a pool that earlier sessions have emptied: what one thread releases another one
// uses, and no block is allocated twice.
TEST_F(HeapReuse, FourThreadsInAnEmptiedPool) {
  constexpr std::uint64_t max = 24 * MiB;
  std::set<std::uint64_t> shared;
  for (int session = 0; session < 6; ++session) {
    base = 0;
    open(max);
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937_64 random(t + 10U * static_cast<unsigned>(session));
        HeapUser mine(*pool);
        const std::uint64_t log2 = 4 + (static_cast<std::uint64_t>(session) * 3 + t) % 13;
        for (int i = 0; i < rounds_in(2000); ++i) {
          if (random() % 3 != 0) {
            const auto b =
                mine.allocate((std::uint64_t{1} << log2) + random() % (std::uint64_t{1} << log2));
            if (b.code() == Code::full) continue;
            ASSERT_TRUE(b.ok()) << b.status().message();
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
            ASSERT_TRUE(mine.free(b).ok());
          }
        }
      });
    for (auto& t : threads) t.join();
    auto expected = shared;
    expected.insert(pool->header().root_offset);
    EXPECT_EQ(expected, blocks());
    for (auto it = shared.begin(); it != shared.end();) {  // one in twenty stays
      if (base++ % 20 == 0) {
        ++it;
        continue;
      }
      ASSERT_TRUE(user->free(*it).ok());
      it = shared.erase(it);
    }
    base = 0;
    close();
  }
}

}  // namespace
}  // namespace perdure::pool
