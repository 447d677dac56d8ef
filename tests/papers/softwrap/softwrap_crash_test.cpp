// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP in both variants, with power cuts and kills at instants that the explorer's programs of
// one thread seldom reach: logs that begin again, two threads' logs, a wrap killed in the middle, a
// round.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/engine/one_engine.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/watch.hpp"
#include "tests/papers/softwrap/softwrap_forms.hpp"

namespace perdure::test {
namespace {

class SoftWrapCrash : public SoftWrapForms {};
ENGINE_SUITE(SoftWrapCrash, forms);

AnyPool<Words> open_on(const EngineInfo& e, const Shape& shape,
                       std::unique_ptr<medium::CrashMedium> medium, bool fresh) {
  Options o = shape.options(e);
  o.creation.uuid_seed = 7;
  return AnyPool<Words>::try_open_on("crash", o, std::move(medium), fresh).value();
}

// Two threads overwrite a word, and the power is cut while buckets begin again (SOFTWRAP-2): the
// base of the younger one's bucket may be durable, that of the older one's not.
TEST_P(SoftWrapCrash, AnOlderValueDoesNotComeBackWhileBucketsBeginAgain) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial})
    for (const bool swapped : {false, true}) {
      const Shape shape = small(4);
      auto made = Recorded::make_medium(shape.ring_bytes * 4, 4 << 20);
      medium::CrashMedium& medium = *made;
      auto opened =
          std::make_unique<AnyPool<Words>>(open_on(GetParam(), shape, std::move(made), true));
      auto& pool = *opened;
      std::atomic<int> turn{0};
      std::vector<std::thread> threads;  // each has its log, in the order of their beginning
      for (std::uint64_t n = 0; n < 2; ++n) {
        threads.emplace_back([&, n] {
          pool.update([](auto& tx, Words& r) { tx(r.word[500]) = 1; });
          ++turn;
          const std::uint64_t value = swapped ? 2 - n : 1 + n;
          while (turn < static_cast<int>(1 + value)) std::this_thread::yield();
          pool.update([&](auto& tx, Words& r) { tx(r.word[3]) = value; });
          ++turn;
        });
        while (turn == static_cast<int>(n)) std::this_thread::yield();
      }
      for (auto& t : threads) t.join();
      Recorded recorded(medium);
      recorded.made(pool.header());
      recorded.begin(0);
      for (int i = 0; i < 4; ++i) pool.checkpoint();  // with aliasing for all: one round each
      recorded.end();
      opened.reset();  // images are explored at its addresses
      recorded.explore<Words>(
          GetParam().recover, model, 2000 / scale, 0,
          [](auto& tx, const Words& r, const crash::Crash&) {
            const std::uint64_t found = tx(r.word[3]);
            return found == 2
                       ? crash::Verdict{{}, found}
                       : crash::Verdict{"the word is " + std::to_string(found) + ", expected 2", 0};
          });
    }
}

/// Ten words that are one number: at least the acknowledged one, at most one more.
crash::Verdict ten_alike(auto& tx, const Words& r, const crash::Crash& crash,
                         std::uint64_t before) {
  const std::uint64_t value = tx(r.word[0]);
  for (std::size_t w = 1; w < 10; ++w)
    if (tx(r.word[w * 9]) != value) return {"a part of a wrap", 0};
  if (crash.created && (value < before + crash.least || value > before + crash.most + 1))
    return {"the words are " + std::to_string(value), 0};
  return {{}, value};
}
void set_ten(AnyPool<Words>& pool, std::uint64_t value) {
  pool.update([&](auto& tx, Words& r) {
    for (std::size_t w = 0; w < 10; ++w) tx(r.word[w * 9]) = value;
  });
}

// WRAPLOG-2: the power is cut anywhere around a log's end, where its bucket begins again.
TEST_P(SoftWrapCrash, ALogBeginsAgain) {
  const auto turns = [](auto& pool) { return pool.stats().checkpoints; };
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    std::uint64_t before = 0;
    {
      auto pool =
          open_on(GetParam(), small(), Recorded::make_medium(small().ring_bytes, 4 << 20), true);
      for (const auto at_first = turns(pool); turns(pool) == at_first;) set_ten(pool, ++before);
    }
    before -= 3;
    auto made = Recorded::make_medium(small().ring_bytes, 4 << 20);
    medium::CrashMedium& medium = *made;
    auto opened =
        std::make_unique<AnyPool<Words>>(open_on(GetParam(), small(), std::move(made), true));
    auto& pool = *opened;
    for (std::uint64_t n = 1; n <= before; ++n) set_ten(pool, n);
    Recorded recorded(medium);
    recorded.made(pool.header());
    for (std::uint64_t step = 0; step < 8; ++step) {
      recorded.begin(step);
      set_ten(pool, before + step + 1);
      recorded.done(step);
    }
    EXPECT_TRUE(for_all() || turns(pool) != 0);
    recorded.end();
    opened.reset();
    recorded.explore<Words>(GetParam().recover, model, 4000 / scale, 50 / scale,
                            [&](auto& tx, const Words& r, const crash::Crash& crash) {
                              return ten_alike(tx, r, crash, before);
                            });
  }
}

// REDO-4: what a kill within a wrap has left is visible, but not durable: a recovery that relies on
// it makes it durable, wherever the power is cut in that recovery.
TEST_P(SoftWrapCrash, WhatAKillLeavesIsMadeDurableByRecovery) {
  bool killed = true;
  for (std::uint64_t events = 0; killed; ++events) {
    auto made = Recorded::make_medium(small().ring_bytes, 4 << 20);
    Recorded recorded(*made);
    std::unique_ptr<medium::CrashMedium> left;
    {
      auto pool = open_on(GetParam(), small(), std::move(made), true);
      recorded.made(pool.header());
      recorded.medium().kill_after(events);
      set_ten(pool, 1);
      killed = !recorded.medium().survives();
      left = recorded.heir();
    }
    {
      auto pool = open_on(GetParam(), small(), std::move(left), false);
      recorded.end();
    }
    recorded.explore<Words>(GetParam().recover, crash::Model::px86, 3000 / scale, 10 / scale,
                            [&](auto& tx, const Words& r, const crash::Crash& crash) {
                              return crash.created ? ten_alike(tx, r, {}, 0) : crash::Verdict{};
                            });
    EXPECT_LT(events, 200U);
  }
}

// A power cut, or a kill, before each call of the medium while a checkpoint writes everything to
// the data region.
TEST_P(SoftWrapCrash, SurvivesAPowerCutInARound) {
  const Shape shape = small();
  auto made = std::make_unique<WatchMedium>(medium::RecordingMedium::make(shape.medium()).value());
  WatchMedium& medium = *made;
  auto pool =
      AnyPool<Words>::try_open_on("recording", shape.options(GetParam()), std::move(made), true)
          .value();
  for (std::uint64_t round = 1; round <= 4; ++round) {
    for (std::uint64_t i = 0; i < 5; ++i)
      pool.update([&](auto& tx, Words& r) {
        for (std::size_t w = 0; w < 10; ++w) tx(r.word[w * 9 + i]) = round * 100 + i;
      });
    std::vector<std::vector<std::byte>> images;
    medium.before_each([&](WatchMedium::Call, std::uint64_t) {
      images.push_back(medium.recording().durable_image());
      images.push_back(medium.recording().current_image());
    });
    pool.checkpoint();
    pool.update([](auto&, Words&) {});  // the round's thread may be at its end already
    medium.before_each({});
    EXPECT_GT(images.size(), 6U);
    for (const auto& image : images) {
      const Recovered r = recover(GetParam(), image, shape);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      const auto* const words = reinterpret_cast<const std::uint64_t*>(r.state.root.data());
      for (std::size_t i = 0; i < 5; ++i)
        for (std::size_t w = 0; w < 10; ++w) ASSERT_EQ(round * 100 + i, words[w * 9 + i]) << round;
    }
  }
}

}  // namespace
}  // namespace perdure::test
