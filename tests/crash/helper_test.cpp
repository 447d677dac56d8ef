// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoints that the pool's own thread makes beside a thread with the exclusive bias
// (ShadowOptions::helper), under a seeded scheduler that changes threads within transactions,
// between the parts of a checkpoint and where one waits for the other. Before many a transaction
// one that stores to the same lines throws. After a power cut at any point the pool must be as some
// step left it that was not acknowledged too early: the data region has no store of a transaction
// that was rolled back or not durable (CKPT-1), and all that the log does not have any more
// (CKPT-2).
#include <gtest/gtest.h>

#include <array>

#include "perdure/perdure.hpp"
#include "testing/crashtest.hpp"
#include "tests/crash/scheduler.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t seeds = 4;
#else
constexpr std::uint64_t seeds = 24;
#endif

std::uint64_t helped = 0, revoked = 0;

struct Oops {};

struct Program {
  struct Root {
    std::array<p<std::uint64_t>, 64> word;
    std::array<ptr<std::uint64_t>, 8> block;

    template <class Tx, class F>
    void each_block(Tx& tx, F&& f) const {
      for (const auto& b : block)
        if (auto* const one = tx.read(b)) f(one);
    }
  };

  template <class Pool>
  void step(Pool& pool, crashtest::Step& s) {
    const auto change = [&](std::uint64_t seed, bool fails) {
      pool.update([&](auto& tx, Root& r) {
        crash::Random random(seed);
        for (int i = 0; i < 6; ++i) {
          auto& word = r.word[random() % r.word.size()];
          tx(word) = tx.read(word) + (fails ? 1000 : 1);
          if (i % 2 == 0) Scheduler::point();
        }
        auto& block = r.block[random() % r.block.size()];
        if (auto* const old = tx.read(block); old != nullptr) {
          tx.free(old);
          tx(block) = nullptr;
        } else {
          tx(block) = reinterpret_cast<std::uint64_t*>(tx.alloc(16 << random() % 8));
        }
        Scheduler::point();
        if (fails) throw Oops();
      });
    };
    const std::uint64_t seed = s.random();
    if (seed % 2 == 0) {
      EXPECT_THROW(change(s.random(), true), Oops);
    }
    change(seed, false);
    const Stats stats = pool.stats();
    helped += stats.helped_checkpoints != 0 ? 1 : 0;
    revoked += stats.bias_revocations;
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& r) {
    std::uint64_t digest = 1;
    const auto fold = [&](std::uint64_t v) { digest = base::mix(digest ^ base::mix(v + 1)); };
    for (const auto& w : r.word) fold(tx.read(w));
    for (const auto& b : r.block) fold(reinterpret_cast<std::uintptr_t>(tx.read(b)));
    return digest;
  }
};

TEST(CrashHelper, BesideABiasNothingIsLost) {
  crash::Counts counts;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    watch_again();  // the limit is for one seed
    crashtest::Plan plan;
    plan.seed = seed;
    plan.steps = 70;
    plan.ring_bytes = 8192;
    plan.engine_options = ShadowOptions{.helper = ShadowOptions::Helper::on};
    plan.explore.model = seed % 2 == 0 ? crash::Model::px86 : crash::Model::adversarial;
    // A window that moves with the seed.
    plan.explore.from = seed % 6 * 12;
    plan.explore.to = plan.explore.from + 8;
    plan.start = Scheduler::start;
    plan.stop = Scheduler::stop;
    plan.event = Scheduler::point;
    const auto report = crashtest::explore<Program, shadow>(plan);
    ASSERT_EQ("", report.failure) << "seed " << seed;
    counts += report.counts;
  }
  EXPECT_GT(helped, seeds) << "no checkpoint was the helper's";
  EXPECT_LT(revoked, helped / 10) << "only where one rollback followed the other";
  EXPECT_GT(counts.distinct, seeds * 100);
  RecordProperty("helped", static_cast<int>(helped));
  RecordProperty("distinct", static_cast<int>(counts.distinct));
}

}  // namespace
}  // namespace perdure::test
