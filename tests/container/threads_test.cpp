// SPDX-License-Identifier: BSD-3-Clause
//
// Containers used by several threads at once, on engines that isolate: each thread's own keys end
// as its model says, sums that every transaction preserves are equal in every view, a queue
// delivers each element once and in each producer's order.
#include <atomic>
#include <map>
#include <thread>

#include "perdure/container/hash_map.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/vector.hpp"
#include "tests/container/pool_policy.hpp"

namespace perdure::test {
namespace {

constexpr std::uint64_t threads = 3;

template <class Instance>
class Threads : public ::testing::Test {};
// The default engine, compiled into its transactions, and the one that PERDURE_TEST_ENGINE names.
using Instances = ::testing::Types<shadow, any_engine>;
TYPED_TEST_SUITE(Threads, Instances);

template <class F>
void in_threads(F f) {
  std::vector<std::thread> running;
  for (std::uint64_t t = 0; t < threads; ++t) running.emplace_back([&f, t] { f(t); });
  for (auto& thread : running) thread.join();
}

struct Maps {
  hash_map<std::uint64_t, std::uint64_t, 8> words;
  hash_map<std::string, std::string, 8> texts;
  map<std::uint64_t, std::uint64_t> sorted;
  map<std::string, std::uint64_t, 5> sorted_texts;
  rb_tree<std::uint64_t, std::uint64_t> tree;
};

/// Threads change keys of their own in all maps; the maps' nodes, buckets and counters are shared.
TYPED_TEST(Threads, OwnKeysInSharedMaps) {
  RealPool<Maps, TypeParam, Emulated> pool;
  std::map<std::uint64_t, std::uint64_t> models[threads];
  in_threads([&](std::uint64_t t) {
    Random random(seed_of_run() * 100 + t);
    auto& model = models[t];
    for (int i = 0; i < 1500; ++i) {
      const std::uint64_t key = below(random, 600) * threads + t, value = random();
      const std::string text = Sample<std::string>::of(key);
      const bool adds = below(random, 10) < (i % 600 < 350 ? 7U : 3U),
                 fails = below(random, 20) == 0;
      try {
        pool.update([&](auto& tx, Maps& maps) {
          if (adds) {
            const bool fresh = maps.words.put(tx, key, value);
            EXPECT_EQ(maps.sorted.put(tx, key, value), fresh);
            EXPECT_EQ(maps.tree.put(tx, key, value), fresh);
            EXPECT_EQ(maps.texts.put(tx, text, std::to_string(value)), fresh);
            EXPECT_EQ(maps.sorted_texts.put(tx, text, value), fresh);
          } else {
            const bool there = maps.words.erase(tx, key);
            EXPECT_EQ(maps.sorted.erase(tx, key), there);
            EXPECT_EQ(maps.tree.erase(tx, key), there);
            EXPECT_EQ(maps.texts.erase(tx, text), there);
            EXPECT_EQ(maps.sorted_texts.erase(tx, text), there);
          }
          if (fails) throw UserError{};
        });
        if (adds)
          model[key] = value;
        else
          model.erase(key);
      } catch (const UserError&) {}
      if (i % 100 == 0) {  // a view sees one state: all maps have the same keys
        pool.view([&](auto& tx, const Maps& maps) {
          std::uint64_t n = 0;
          for (auto at = maps.sorted.begin(tx); at; at.next(tx)) ++n;
          EXPECT_EQ(n, maps.words.size(tx));
          EXPECT_EQ(n, maps.tree.size(tx));
          return 0;
        });
      }
    }
  });
  std::map<std::uint64_t, std::uint64_t> all;
  for (auto& model : models) all.merge(model);
  pool.view([&](auto& tx, const Maps& maps) {
    EXPECT_EQ(maps.words.size(tx), all.size());
    EXPECT_EQ(maps.sorted.size(tx), all.size());
    auto it = all.begin();
    maps.sorted.for_each(tx, [&](std::uint64_t key, std::uint64_t value) {
      EXPECT_TRUE(it != all.end() && it->first == key && it->second == value);
      return it++ != all.end();
    });
    for (const auto& [key, value] : all) {
      EXPECT_EQ(maps.words.find(tx, key), value);
      EXPECT_EQ(maps.tree.find(tx, key), value);
      EXPECT_EQ(maps.texts.find(tx, Sample<std::string>::of(key)), std::to_string(value));
      EXPECT_EQ(maps.sorted_texts.find(tx, Sample<std::string>::of(key)), value);
    }
    return 0;
  });
  EXPECT_EQ(pool.compare_blocks({}), "");
}

struct Bank {
  hash_map<std::uint64_t, std::int64_t> accounts;
  vector<std::int64_t> mirror;
};

/// Transfers keep the sum, in two containers at once; every view sees it.
TYPED_TEST(Threads, TransfersKeepTheSum) {
  RealPool<Bank, TypeParam, Emulated> pool;
  constexpr std::uint64_t accounts = 200;
  pool.update([](auto& tx, Bank& bank) {
    for (std::uint64_t i = 0; i < accounts; ++i) bank.accounts.insert(tx, i, 100);
    bank.mirror.resize(tx, accounts, 100);
  });
  std::atomic<int> odd{0};
  in_threads([&](std::uint64_t t) {
    Random random(t);
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t from = below(random, accounts), to = below(random, accounts);
      const auto amount = static_cast<std::int64_t>(below(random, 50));
      pool.update([&](auto& tx, Bank& bank) {
        bank.accounts.update(tx, from, [&](auto& v) { v -= amount; });
        bank.accounts.update(tx, to, [&](auto& v) { v += amount; });
        bank.mirror.update(tx, from, [&](auto& v) { v -= amount; });
        bank.mirror.update(tx, to, [&](auto& v) { v += amount; });
      });
      if (i % 50 != 0) continue;
      const bool equal = pool.view([&](auto& tx, const Bank& bank) {
        std::int64_t sum = 0, mirrored = 0;
        bank.accounts.for_each(tx, [&](std::uint64_t, std::int64_t v) { sum += v; });
        bank.mirror.for_each(tx, [&](std::int64_t v) { mirrored += v; });
        return sum == static_cast<std::int64_t>(accounts) * 100 && mirrored == sum;
      });
      if (!equal) ++odd;
    }
  });
  EXPECT_EQ(odd, 0) << "views that saw half a transfer";
  EXPECT_EQ(pool.compare_blocks({}), "");
}

struct Work {
  queue<std::uint64_t> jobs;
};

/// Every job is taken once, and each producer's jobs in the order of their pushes.
TYPED_TEST(Threads, AQueueDeliversOnce) {
  RealPool<Work, TypeParam, Emulated> pool;
  constexpr std::uint64_t each = 3000;
  std::vector<std::uint64_t> taken;
  in_threads([&](std::uint64_t t) {
    if (t == 0) {
      while (taken.size() < each * (threads - 1)) {
        std::optional<std::uint64_t> job;
        pool.update([&](auto& tx, Work& work) { job = work.jobs.pop(tx); });
        if (job)
          taken.push_back(*job);
        else
          std::this_thread::yield();
      }
    } else {
      for (std::uint64_t i = 0; i < each; ++i)
        pool.update([&](auto& tx, Work& work) { work.jobs.push(tx, t << 32 | i); });
    }
  });
  std::uint64_t next[threads] = {};
  for (const std::uint64_t job : taken) EXPECT_EQ(job & 0xffffffff, next[job >> 32]++);
  EXPECT_EQ(next[1], each);
  EXPECT_EQ(next[2], each);
  EXPECT_EQ(pool.compare_blocks({}), "");
}

}  // namespace
}  // namespace perdure::test
