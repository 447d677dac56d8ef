// SPDX-License-Identifier: BSD-3-Clause
//
// The number of bytes that an operation stores: the sizes of log and checkpoint follow from it.
// Also slot_order, compared with a plain list.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "perdure/container/hash_map.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/slot_order.hpp"
#include "perdure/container/vector.hpp"
#include "tests/container/dram_tx.hpp"

namespace perdure::test {
namespace {

template <class C>
struct Root {
  C x;
};

/// Bytes written, allocations and frees of one call, on a container filled with 20,000 elements
/// with random keys.
struct Cost {
  double bytes, writes, allocs, frees;
};
template <class Pool, class F>
Cost cost(Pool& pool, int n, F f) {
  pool.heap().reset_counts();
  pool.update([&](auto& tx, auto& root) {
    for (int i = 0; i < n; ++i) f(tx, root.x, static_cast<std::uint64_t>(i));
  });
  const auto& h = pool.heap();
  return {static_cast<double>(h.bytes) / n, static_cast<double>(h.writes) / n,
          static_cast<double>(h.allocs) / n, static_cast<double>(h.frees) / n};
}
std::uint64_t key(std::uint64_t i) { return i * 0x9e3779b97f4a7c15ULL; }

template <class C>
void fill(DramPool<Root<C>>& pool) {
  pool.update([](auto& tx, auto& root) {
    for (std::uint64_t i = 0; i < 20000; ++i) root.x.insert(tx, key(i), i);
  });
}

TEST(Cost, OfAHashMap) {
  using C = hash_map<std::uint64_t, std::uint64_t>;
  DramPool<Root<C>> pool;
  pool.update([](auto& tx, auto& root) { root.x.reserve(tx, 65536); });
  fill(pool);
  const Cost insert =
      cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.insert(tx, key(i + 20000), i); });
  EXPECT_EQ(insert.allocs, 1.0);
  EXPECT_EQ(insert.bytes, 24.0 + 8 + 8);  // node, bucket, counter
  EXPECT_EQ(insert.writes, 3.0);
  const Cost erase =
      cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.erase(tx, key(i + 20000)); });
  EXPECT_EQ(erase.bytes, 16.0);  // link, counter
  EXPECT_EQ(erase.frees, 1.0);
  const Cost put = cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.put(tx, key(i), 7); });
  EXPECT_EQ(put.bytes, 8.0);
  const Cost same =
      cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.update(tx, key(i), [](auto&) {}); });
  EXPECT_EQ(same.writes, 0.0);
}

/// Growing, including all splits, costs less than twice the node in addition.
TEST(Cost, OfAGrowingHashMap) {
  using C = hash_map<std::uint64_t, std::uint64_t>;
  DramPool<Root<C>> pool;
  std::uint64_t most = 0;
  const Cost all = cost(pool, 50000, [&](auto& tx, C& c, std::uint64_t i) {
    const std::uint64_t before = pool.heap().bytes;
    c.insert(tx, key(i), i);
    most = std::max(most, pool.heap().bytes - before);
  });
  EXPECT_LT(all.bytes, 40 + 48);
  EXPECT_LT(most, 8192U) << "one insertion wrote a great deal: not incremental";
}

TEST(Cost, OfAMap) {
  using C = map<std::uint64_t, std::uint64_t>;
  DramPool<Root<C>> pool;
  fill(pool);
  const Cost insert =
      cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.insert(tx, key(i + 20000), i); });
  EXPECT_LT(insert.bytes, 32 + 32);  // key, value, order, counter; and a tenth of a split
  const Cost erase =
      cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.erase(tx, key(i + 20000)); });
  EXPECT_LT(erase.bytes, 16 + 16);
  const Cost update = cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) {
    c.update(tx, key(i), [](auto& v) { ++v; });
  });
  EXPECT_EQ(update.bytes, 8.0);
}

/// Keys in ascending order fill their leaves: 256 bytes for 15 entries.
TEST(Cost, AscendingKeysFillNodes) {
  using C = map<std::uint64_t, std::uint64_t>;
  DramPool<Root<C>> pool;
  pool.update([](auto& tx, auto& root) {
    for (std::uint64_t i = 0; i < 15000; ++i) root.x.insert(tx, i, i);
  });
  EXPECT_LT(pool.heap().blocks.size(), 1000U + 1000U / 10);
}

TEST(Cost, OfARedBlackTree) {
  using C = rb_tree<std::uint64_t, std::uint64_t>;
  DramPool<Root<C>> pool;
  fill(pool);
  const Cost insert =
      cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.insert(tx, key(i + 20000), i); });
  EXPECT_LT(insert.bytes, 48 + 8 + 8 + 64);
  const Cost erase =
      cost(pool, 1000, [](auto& tx, C& c, std::uint64_t i) { c.erase(tx, key(i + 20000)); });
  EXPECT_LT(erase.bytes, 96);
}

TEST(Cost, OfSequences) {
  DramPool<Root<vector<std::uint64_t>>> vectors;
  vectors.update([](auto& tx, auto& root) { root.x.resize(tx, 1000); });
  EXPECT_EQ(cost(vectors, 1000, [](auto& tx, auto& c, std::uint64_t i) { c.set(tx, i, i); }).bytes,
            8.0);
  const Cost push =
      cost(vectors, 100000, [](auto& tx, auto& c, std::uint64_t i) { c.push_back(tx, i); });
  EXPECT_LT(push.bytes, 16.1);
  DramPool<Root<queue<std::uint64_t>>> queues;
  EXPECT_LT(cost(queues, 10000, [](auto& tx, auto& c, std::uint64_t i) { c.push(tx, i); }).bytes,
            16.5);
  EXPECT_LT(cost(queues, 10000, [](auto& tx, auto& c, std::uint64_t) { c.pop(tx); }).bytes, 8.5);
  DramPool<Root<list<std::uint64_t>>> lists;
  EXPECT_LT(cost(lists, 1000, [](auto& tx, auto& c, std::uint64_t i) { c.push_back(tx, i); }).bytes,
            24 + 24.1);
}

/// A change of a few bytes in a long text writes only those bytes.
TEST(Cost, OfAChangedText) {
  using C = hash_map<std::string, std::string>;
  DramPool<Root<C>> pool;
  std::string text(100000, 'x');
  pool.update([&](auto& tx, auto& root) { root.x.put(tx, "key", text); });
  const Cost change = cost(pool, 1, [](auto& tx, C& c, std::uint64_t) {
    c.update(tx, "key", [](std::string& v) { v[5000] = 'y', v[5003] = 'z'; });
  });
  EXPECT_EQ(change.bytes, 4.0);
  EXPECT_EQ(change.allocs, 0.0);
}

template <unsigned Capacity>
void order_against_list() {
  using Order = detail::slot_order<Capacity>;
  std::mt19937_64 random(Capacity);
  struct Where {
    p<Order> x;
  };
  DramPool<Where> pool;
  Order order = Order::first(0);
  pool.update([&](auto& tx, Where& root) { tx.write(root.x, order); });
  std::vector<unsigned> model;
  for (int i = 0; i < 3000; ++i) {
    const Order old = order;
    const unsigned n = static_cast<unsigned>(model.size());
    ASSERT_EQ(order.count(), n);
    if (n < Capacity && random() % 3 != 0) {
      const unsigned at = static_cast<unsigned>(random() % (n + 1)), slot = order.insert(at);
      ASSERT_EQ(std::count(model.begin(), model.end(), slot), 0) << "the slot is in use";
      model.insert(model.begin() + at, slot);
    } else if (n > 0 && random() % 40 != 0) {
      const unsigned at = static_cast<unsigned>(random() % n);
      order.erase(at);
      model.erase(model.begin() + at);
    } else {
      const unsigned keep = static_cast<unsigned>(random() % (n + 1));
      order.truncate(keep);
      model.resize(keep);
    }
    for (unsigned k = 0; k < model.size(); ++k) ASSERT_EQ(order[k], model[k]);
    std::vector<bool> used(Capacity);
    for (unsigned k = 0; k < Capacity; ++k) {
      ASSERT_LT(order[k], Capacity);
      ASSERT_FALSE(used[order[k]]);
      used[order[k]] = true;
    }
    pool.update([&](auto& tx, Where& root) { order.store(tx, root.x, old); });
    const Order stored = pool.view([](auto& tx, const Where& root) { return tx.read(root.x); });
    ASSERT_EQ(std::memcmp(&stored, &order, sizeof order), 0);
  }
}
TEST(SlotOrder, IsAPermutation) {
  static_assert(sizeof(detail::slot_order<15>) == 8 && sizeof(detail::slot_order<16>) == 24 &&
                sizeof(detail::slot_order<255>) == 256);
  order_against_list<4>();
  order_against_list<15>();
  order_against_list<16>();
  order_against_list<31>();
  order_against_list<255>();
}

}  // namespace
}  // namespace perdure::test
