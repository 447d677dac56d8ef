// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP's alias tables: the content of one; the states of the two and the colours of the open
// wraps; no wrap sees a value that is not the newest while tables are switched, written to the data
// region and emptied.
#include "papers/softwrap/alias_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace perdure::test {
namespace {

using papers::softwrap::AliasTable;
using papers::softwrap::AliasTables;
using papers::softwrap::TableState;

TEST(AliasTable, HoldsWhatItWasGiven) {
  AliasTable table(4096);
  std::mt19937_64 random(3);
  std::map<std::uint64_t, std::uint64_t> model;
  EXPECT_EQ(nullptr, table.find(0));
  for (int i = 0; i < 3500; ++i) {
    const std::uint64_t offset = i == 0 ? 0 : random() % 6000 * 8, value = random();
    std::uint64_t* const alias = table.add(offset, value);
    ASSERT_NE(nullptr, alias);
    // An existing alias stays as it is.
    EXPECT_EQ(model.contains(offset) ? model[offset] : value, *alias);
    model[offset] = *alias = value;
  }
  EXPECT_EQ(model.size(), table.size());
  for (std::uint64_t w = 0; w < 6000; ++w) {
    const std::uint64_t* const alias = table.find(w * 8);
    ASSERT_EQ(model.contains(w * 8), alias != nullptr) << w;
    if (alias != nullptr) {
      EXPECT_EQ(model[w * 8], *alias);
    }
  }
  std::map<std::uint64_t, std::uint64_t> all;
  table.for_each([&](std::uint64_t offset, std::uint64_t value) {
    EXPECT_TRUE(all.emplace(offset, value).second);
  });
  EXPECT_EQ(model, all);
  table.clear();
  EXPECT_EQ(0U, table.size());
  EXPECT_EQ(nullptr, table.find(0));
}

TEST(AliasTable, ForgetsWhatAnAbortedWrapHasAdded) {
  AliasTable table(64);
  std::uint64_t* const alias = table.add(8, 1);
  (void)table.add(16, 2);
  AliasTable::forget(alias);
  EXPECT_EQ(nullptr, table.find(8));
  table.for_each([](std::uint64_t offset, std::uint64_t) { EXPECT_EQ(16U, offset); });
  EXPECT_EQ(alias, table.add(8, 3));  // its place is still its own
  EXPECT_EQ(alias, table.find(8));
  EXPECT_EQ(3U, *alias);
  EXPECT_EQ(2U, table.size());
}

TEST(AliasTable, IsFullAtSevenEighthsAndGrows) {
  AliasTable table(1);
  EXPECT_EQ(64U, table.capacity());
  for (std::uint64_t i = 0; i < 56; ++i) ASSERT_NE(nullptr, table.add(i * 8, i));
  EXPECT_EQ(nullptr, table.add(56 * 8, 0));
  EXPECT_NE(nullptr, table.add(55 * 8, 0));  // it exists
  EXPECT_EQ(nullptr, table.find(56 * 8));
  table.reset(100);
  EXPECT_EQ(128U, table.capacity());
  EXPECT_EQ(nullptr, table.find(0));
}

// Threads add the same words concurrently; each finds one place for a word, whatever the others do.
TEST(AliasTable, ManyAddAtATime) {
  constexpr int threads = 4, words = 3000;
  AliasTable table(1 << 14);
  std::vector<std::vector<std::uint64_t*>> places(threads, std::vector<std::uint64_t*>(words));
  std::barrier start(threads);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      std::vector<int> order(words);
      for (int i = 0; i < words; ++i) order[static_cast<std::size_t>(i)] = i;
      std::shuffle(order.begin(), order.end(), random);
      start.arrive_and_wait();
      for (const int w : order)
        places[static_cast<std::size_t>(t)][static_cast<std::size_t>(w)] =
            table.add(static_cast<std::uint64_t>(w) * 8, 7);
    });
  for (auto& t : all) t.join();
  EXPECT_EQ(static_cast<std::uint64_t>(words), table.size());
  for (int w = 0; w < words; ++w)
    for (int t = 0; t < threads; ++t)
      ASSERT_EQ(table.find(static_cast<std::uint64_t>(w) * 8),
                places[static_cast<std::size_t>(t)][static_cast<std::size_t>(w)]);
}

// Objects of several pages, together with words that have aliases of their own: a part of the words
// lies in the pages, a part does not.
TEST(AliasPages, HoldObjectsAndForgetThem) {
  for (const std::uint64_t page_bytes : {512, 1024, 8192}) {
    AliasTables t(4096, page_bytes);
    (void)t.open(0);
    std::mt19937_64 random(page_bytes);
    std::map<std::uint64_t, std::uint64_t> model;
    for (int round = 0; round < 60; ++round) {
      if (round % 20 == 19) {  // the previous contents are in the other table
        const std::uint64_t period = t.now().period();
        t.close(0);
        t.empty(0);
        t.switch_over();
        (void)t.open(0);
        std::erase_if(model, [&](const auto& e) {
          return t.table(static_cast<unsigned>(period & 1)).find(e.first) == nullptr;
        });
      }
      const std::uint64_t first = random() % 2000;
      std::vector<std::uint64_t> object(16 + random() % 300);
      for (auto& w : object) w = random();
      std::vector<papers::softwrap::AliasPages::Change> changes;
      std::vector<std::pair<std::uint64_t*, std::uint64_t>> undo;
      ASSERT_TRUE(t.active().pages.write(
          first * 8, object.data(), object.size(),
          [&](const papers::softwrap::AliasPages::Change& c, std::uint64_t there) {
            changes.push_back(c);
            for (unsigned b = 0; b < 64; ++b)
              if ((there >> b & 1) != 0) undo.emplace_back(c.first + b, c.first[b]);
          }));
      if (random() % 3 == 0) {
        for (const auto& [word, old] : undo) *word = old;
        for (const auto& c : changes) papers::softwrap::AliasPages::forget(c);
      } else {
        for (std::size_t i = 0; i < object.size(); ++i) model[(first + i) * 8] = object[i];
      }
      for (int i = 0; i < 5; ++i) {
        const std::uint64_t offset = random() % 2400 * 8;
        std::uint64_t* const alias = t.active().find(offset);
        *(alias != nullptr ? alias : t.active().words.add(offset, 0)) = model[offset] = random();
      }
      std::vector<std::uint64_t> all(2400);
      t.read(0, all.data(), all.size(), [](std::uint64_t i) { return i; });
      for (std::uint64_t w = 0; w < all.size(); ++w) {
        const std::uint64_t* const alias = t.find(w * 8);
        ASSERT_EQ(model.contains(w * 8), alias != nullptr) << w;
        if (alias != nullptr) {
          ASSERT_EQ(model[w * 8], *alias) << w;
        }
        ASSERT_EQ(alias != nullptr ? *alias : w, all[w]) << w;
      }
    }
    std::map<std::uint64_t, std::uint64_t> home;  // the older table's values, then the newer one's
    for (const unsigned table : {t.now().active() ^ 1, t.now().active()})
      t.table(table).for_each(
          [&](std::uint64_t offset, std::uint64_t value) { home[offset] = value; });
    EXPECT_EQ(model, home);
  }
}

TEST(AliasPages, AreFullWhenTheirIndexIs) {
  papers::softwrap::AliasPages pages(1024, 64);
  const std::vector<std::uint64_t> page(128, 7);
  const auto write = [&](std::uint64_t n) {
    return pages.write(n * 1024, page.data(), page.size(),
                       [](const papers::softwrap::AliasPages::Change&, std::uint64_t) {});
  };
  for (std::uint64_t n = 0; n < 56; ++n) ASSERT_TRUE(write(n));
  EXPECT_FALSE(write(56));
  EXPECT_EQ(56U, pages.size());
  pages.clear();
  EXPECT_EQ(nullptr, pages.find(0));
  EXPECT_TRUE(write(56));
  EXPECT_EQ(7U, *pages.find(56 * 1024 + 8));
}

// One cycle of the paper's Figure 3.
TEST(AliasTables, GoThroughTheirStates) {
  AliasTables t(64);
  const auto states = [&] {
    return std::string{static_cast<char>(t.state(0)), static_cast<char>(t.state(1))};
  };
  const auto counts = [&](std::array<unsigned, 4> n) { EXPECT_EQ(n, t.counts()); };
  EXPECT_EQ("AE", states());
  const auto first = t.open(0);  // table 0 is active, the other one need not be read
  EXPECT_EQ(0U, first.active());
  EXPECT_TRUE(first.other_retired());
  counts({0, 1, 0, 0});
  (void)t.active().words.add(8, 80);
  t.switch_over();
  EXPECT_EQ("FA", states());
  EXPECT_TRUE(t.any_of_period(0));
  const auto second = t.open(1);
  EXPECT_EQ(1U, second.active());
  EXPECT_FALSE(second.other_retired());
  counts({0, 1, 1, 0});
  EXPECT_EQ(80U, *t.find(8));  // in the full one
  *t.active().words.add(8, 0) = 81;
  EXPECT_EQ(81U, *t.find(8));
  t.close(0);
  EXPECT_FALSE(t.any_of_period(0));
  t.note_closed();
  EXPECT_EQ("CA", states());
  (void)t.active().words.add(16, 160);
  (void)t.table(0).words.add(24, 240);
  EXPECT_EQ(240U, *t.find(24));
  t.note_retired();
  EXPECT_EQ("RA", states());
  EXPECT_EQ(nullptr, t.find(24)) << "home has it";
  const auto third = t.open(0);
  EXPECT_TRUE(third.other_retired());
  counts({0, 0, 1, 1});
  EXPECT_TRUE(t.any_that_looks(1)) << "the second wrap may be in the retired table yet";
  t.close(1);
  EXPECT_FALSE(t.any_that_looks(1));
  EXPECT_TRUE(t.any_open());
  t.empty(1000);
  EXPECT_EQ("EA", states());
  EXPECT_EQ(1024U, t.table(0).capacity());
  t.switch_over();
  EXPECT_EQ("AF", states());
  EXPECT_EQ(160U, *t.find(16));
  EXPECT_EQ(0U, t.now().active());
  EXPECT_EQ(2U, t.now().period());
  t.close(0);
  EXPECT_FALSE(t.any_open());
}

// Wraps that each add 1 to two words, or abort, on words of their own, while the tables switch as
// fast as they can.
TEST(AliasTables, NoWrapMissesAValueWhileTheyTakeTurns) {
  constexpr std::size_t words = 40;
  constexpr int threads = 3, wraps = 3000;
  AliasTables t(1024);
  std::array<std::atomic<std::uint64_t>, words> home{};
  std::array<std::mutex, words> locks;
  std::array<std::uint64_t, words> model{};
  std::atomic<int> running{threads};
  std::atomic<int> wrong{0};
  std::barrier start(threads + 1);
  std::vector<std::thread> all;
  for (int id = 0; id < threads; ++id)
    all.emplace_back([&, id] {
      std::mt19937_64 random(static_cast<std::uint64_t>(id));
      start.arrive_and_wait();
      for (int i = 0; i < wraps; ++i) {
        std::size_t a = random() % words, b = random() % words;
        if (a == b) b = (b + 1) % words;
        if (a > b) std::swap(a, b);
        const std::lock_guard first(locks[a]), second(locks[b]);
        (void)t.open(id);
        std::vector<std::pair<std::uint64_t*, std::uint64_t>> undo;  // 0: remove it
        const bool gives_up = random() % 4 == 0;
        for (const std::size_t w : {a, b}) {
          const std::uint64_t* const alias = t.find(w * 8);
          const std::uint64_t value =
              alias != nullptr ? *alias : home[w].load(std::memory_order_relaxed);
          if (value != model[w]) ++wrong;
          if (random() % 8 == 0) std::this_thread::yield();
          AliasTables::Table& active = t.active();
          std::uint64_t* mine = active.find(w * 8);
          if (mine != nullptr) {
            undo.emplace_back(mine, *mine);
          } else {
            mine = active.words.add(w * 8, value);
            undo.emplace_back(mine, 0);
          }
          // The thread that writes the table to the data region reads it when the wrap has closed.
          *mine = gives_up ? ~std::uint64_t{0} : ++model[w];
        }
        if (gives_up)
          for (const auto& [alias, old] : undo)
            old == 0 ? papers::softwrap::AliasTable::forget(alias) : void(*alias = old);
        t.close(id);
      }
      --running;
    });
  std::uint64_t turns = 0;
  start.arrive_and_wait();
  while (running != 0) {
    const std::uint64_t period = t.now().period();
    t.switch_over();
    while (t.any_of_period(period)) std::this_thread::yield();
    t.note_closed();
    t.table(t.now().active() ^ 1).for_each([&](std::uint64_t offset, std::uint64_t value) {
      home[offset / 8].store(value, std::memory_order_relaxed);
    });
    t.note_retired();
    while (t.any_that_looks(period + 1)) std::this_thread::yield();
    t.empty(0);
    ++turns;
  }
  for (auto& thread : all) thread.join();
  EXPECT_EQ(0, wrong);
  EXPECT_GT(turns, 3U);
  for (std::size_t w = 0; w < words; ++w) {
    const std::uint64_t* const alias = t.active().find(w * 8);
    EXPECT_EQ(model[w], alias != nullptr ? *alias : home[w].load()) << w;
  }
}

}  // namespace
}  // namespace perdure::test
