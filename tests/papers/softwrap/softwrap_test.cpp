// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP in both variants: explored with power cuts; the cost of a wrap; rounds that write tables
// to the data region, and wraps that are open meanwhile, that end at the very end of a round, or
// are aborted; wraps that are open for too long.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/conformance/workloads.hpp"
#include "tests/engine/one_engine.hpp"
#include "tests/engine/watch.hpp"
#include "tests/papers/softwrap/softwrap_forms.hpp"

namespace perdure::test {
namespace {

class SoftWrap : public SoftWrapForms {
 protected:
  template <class Workload>
  void explore(std::uint64_t steps = 24) {
    explore_engine<Workload>(GetParam(), steps, 500);
  }
};
ENGINE_SUITE(SoftWrap, forms);

TEST_P(SoftWrap, GoesOnInASmallLogAndGivesNoIdTwice) {
  go_on_in_a_small_log(GetParam(), small(), 1000 / scale);
}

// The paper's Table I: for n words ceil((12n + 8) / 64) lines are streamed, and there is one fence
// (its pcommit), before the data region has any of them. With aliasing for all the wrap's thread
// stores nothing to the data region.
TEST_P(SoftWrap, CostsWhatTheTableSays) {
  auto made =
      std::make_unique<WatchMedium>(medium::RecordingMedium::make(small().medium()).value());
  WatchMedium& medium = *made;
  auto pool =
      AnyPool<Words>::try_open_on("recording", small().options(GetParam()), std::move(made), true)
          .value();
  for (const std::uint64_t n : {1, 3, 8, 10, 15, 20, 40}) {
    const std::uint64_t fences = medium.my_fences(), lines = medium.my_streamed_lines(),
                        logged = pool.stats().log_bytes;
    std::uint64_t fences_of_data = 0, of_data = 0;
    medium.before_data_write(
        [&, self = std::this_thread::get_id()](std::uint64_t, const void*, std::size_t) {
          if (std::this_thread::get_id() != self) return;
          if (of_data++ == 0) fences_of_data = medium.my_fences() - fences;
        });
    pool.update([&](auto& tx, Words& r) {
      for (std::size_t w = 0; w < n; ++w) tx(r.word[w * 8]) = n;
    });
    medium.before_data_write({});
    EXPECT_EQ((12 * n + 8 + 63) / 64, medium.my_streamed_lines() - lines) << n;
    EXPECT_EQ((12 * n + 8 + 63) / 64 * 64, pool.stats().log_bytes - logged) << n;
    EXPECT_EQ(1U, medium.my_fences() - fences) << n;
    EXPECT_EQ(for_all() ? 0 : n, of_data) << n;
    EXPECT_EQ(for_all() ? 0U : 1U, fences_of_data) << n;
  }
}

TEST_P(SoftWrap, ReadsCostTheMediumNothing) {
  auto rig = open_rig<Words>(GetParam(), small());
  rig.pool.update([](auto& tx, Words& r) { tx(r.word[1]) = 1; });
  rig.pool.checkpoint();
  const auto before = rig.medium->counters();
  for (int i = 0; i < 10; ++i) {
    rig.pool.view([](auto& tx, const Words& r) { return std::uint64_t{tx(r.word[1])}; });
    rig.pool.update([](auto& tx, Words& r) { return std::uint64_t{tx(r.word[1])}; });
  }
  const auto after = rig.medium->counters() - before;
  EXPECT_EQ(0U, after.stores + after.streamed_lines + after.flushed_lines + after.fences);
}

TEST_P(SoftWrap, TheDataRegionHasNothingOfAnOpenWrap) {
  auto rig = open_rig<Words>(GetParam(), small());
  rig.pool.update([&](auto& tx, Words& r) {
    for (std::uint64_t v = 1; v <= 3; ++v) {
      tx(r.word[5]) = v;
      EXPECT_EQ(v, tx.read(r.word[5]));
      EXPECT_EQ(0U, *reinterpret_cast<const std::uint64_t*>(&r.word[5]));
    }
  });
  rig.pool.view([](auto& tx, const Words& r) { EXPECT_EQ(3U, tx(r.word[5])); });
  rig.pool.checkpoint();
  rig.pool.view([](auto& tx, const Words& r) {
    EXPECT_EQ(3U, *reinterpret_cast<const std::uint64_t*>(&r.word[5]));
    EXPECT_EQ(3U, tx(r.word[5]));
  });
}

TEST_P(SoftWrap, RefusesWhatNeverFits) {
  Shape shape = small();
  shape.softwrap.alias_entries = 64;
  auto rig = open_rig<std::array<Words, 3>>(GetParam(), shape);
  for (int i = 0; i < 3; ++i) {
    const auto result = rig.pool.try_update([](auto& tx, auto& all) {
      for (auto& r : all)
        for (auto& w : r.word) tx(w) = 7;
    });
    EXPECT_EQ(Code::too_big, result.code());
  }
  rig.pool.view([](auto& tx, const auto& all) {
    for (const auto& r : all)
      for (const auto& w : r.word) ASSERT_EQ(0U, tx(w));
  });
  rig.pool.update([](auto& tx, auto& all) {
    // Nearly everything that a bucket has space for; more than the tables have: they grow.
    for (std::size_t w = 0; w < 660; ++w) tx(all[0].word[w]) = w;
  });
  rig.pool.view([](auto& tx, const auto& all) {
    for (std::size_t w = 0; w < 660; ++w) ASSERT_EQ(w, tx(all[0].word[w]));
  });
}

struct Large {
  std::array<p<std::uint64_t>, 20'000> word;
};
// Tables also grow for objects, whose words they keep in pages.
TEST_P(SoftWrap, TakesAnObjectThatATableHasNoRoomFor) {
  Shape shape = small();
  shape.ring_bytes = 1 << 20;
  shape.softwrap.alias_entries = 64;
  auto rig = open_rig<Large>(GetParam(), shape);
  const std::vector<std::uint64_t> values(20'000, 7);
  for (const bool scattered : {false, true})
    rig.pool.update([&](auto& tx, Large& r) {
      for (std::size_t w = 0; w < values.size(); w += scattered ? 128 : values.size())
        tx.write_bytes(static_cast<void*>(&r.word[w]), values.data(),
                       scattered ? 128 : values.size() * 8);
    });
  rig.pool.view([](auto& tx, const Large& r) {
    for (const auto& w : r.word) ASSERT_EQ(7U, tx(w));
  });
}

struct Nine {
  std::array<std::array<p<std::uint64_t>, 60>, 9> row;
};
// One wrap's words nearly fill a table of 64 entries, those of nine that run at once never fit: it
// grows, and each of them ends.
TEST_P(SoftWrap, ATableThatNineThreadsFillGrows) {
  Shape shape = small();
  shape.softwrap.alias_entries = 64;
  auto rig = open_rig<Nine>(GetParam(), shape);
  const std::uint64_t rounds = 100 / scale;
  in_threads(9, [&](int me) {
    for (std::uint64_t i = 1; i <= rounds; ++i)
      rig.pool.update([&](auto& tx, Nine& r) {
        for (auto& w : r.row[static_cast<std::size_t>(me)]) tx(w) = i;
      });
  });
  rig.pool.view([&](auto& tx, const Nine& r) {
    for (const auto& row : r.row)
      for (const auto& w : row) ASSERT_EQ(rounds, tx(w));
  });
}

// Two threads overwrite a word, in either order of their logs; the second one's log is truncated,
// the first one's remains. Without X the older value would come back (SOFTWRAP-2). The mutation
// gate removes X.
TEST_P(SoftWrap, AnOlderValueInAnothersLogDoesNotComeBack) {
  // Until each bucket has begun again.
  an_older_value_does_not_come_back(GetParam(), small(4), 1200);
}

TEST_P(SoftWrap, LosesNoOldValues) { explore<TakenBack>(); }
TEST_P(SoftWrap, LosesNoSwaps) { explore<conformance::Swaps>(); }
TEST_P(SoftWrap, LosesNoBlocks) { explore<conformance::Churn>(); }

}  // namespace
}  // namespace perdure::test
