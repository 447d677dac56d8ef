// SPDX-License-Identifier: BSD-3-Clause
//
// A process is killed before each fence of one transaction in turn, the next process recovers the
// pool, and power is cut at each point of that: what the killed process had appended is visible,
// and not durable unless recovery makes it so before the data region rests on it (REDO-4). The
// transaction allocates or frees a block, so that half of it shows as a leak or a block in use that
// counts as free.
#include <gtest/gtest.h>

#include <string>

#include "perdure/perdure.hpp"
#include "testing/crashtest.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/engine/suite.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::test {
namespace {

using conformance::Configuration;
using conformance::configurations;

struct Root {
  p<std::uint64_t> count;
  ptr<std::uint64_t> block;  // there is one while count is odd

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (auto* const one = tx.read(block)) f(one);
  }
};
using TestPool = AnyPool<Root>;

void step(TestPool& pool) {
  pool.update([](auto& tx, Root& r) {
    if (std::uint64_t* const one = tx.read(r.block); one != nullptr) {
      tx.free(one);
      tx(r.block) = nullptr;
    } else {
      tx(r.block) = reinterpret_cast<std::uint64_t*>(tx.alloc(16));
    }
    tx(r.count) = tx.read(r.count) + 1;
  });
}

class Killed : public EngineTest {};
ENGINE_SUITE(Killed, durable_ones);

/// Kills the process before the fence `fence` of the step after `warm` others, and explores what
/// follows. Returns false if the step has no such fence.
bool explore(const EngineInfo& e, const Configuration& configuration, std::uint64_t warm,
             std::uint64_t fence, crash::Model model, crash::Counts& counts, std::string& failure) {
  watch_again();  // the limit is for one run
  crashtest::Plan plan;
  plan.durability = configuration.durability;
  plan.like_a_file = configuration.like_a_file;
  plan.engine = e.name;
  plan.ring_bytes = is_undo(e) && configuration.like_a_file ? 1 << 20 : 65536;
  plan.data_bytes = plan.max_data_bytes = 6 * pool::chunk_bytes;
  const Options options = crashtest::detail::options_of(plan, e);
  auto medium = medium::CrashMedium::make(crashtest::detail::medium_of(plan)).value();
  auto* killed = medium.get();
  auto pool = std::make_unique<TestPool>(
      TestPool::try_open_on("crash", options, std::move(medium), true).value());
  for (std::uint64_t i = 0; i < warm; ++i) step(*pool);
  // Otherwise recovery replays what these steps did to the same block, and so hides a loss.
  pool->checkpoint();
  const crash::Arena::Geometry geometry{killed->log_bytes(), killed->max_data_bytes(),
                                        pool->header().base, killed->append_unit(),
                                        killed->fence_is_sync()};
  crash::Image image(killed->begin_trace(), killed->data_bytes());
  killed->done(0);
  killed->begin(0);
  killed->kill_at_fence(fence);
  step(*pool);
  if (killed->survives()) return false;
  auto heir = killed->heir();
  auto* const second = heir.get();
  pool.reset();  // nothing records what it does now
  pool = std::make_unique<TestPool>(
      TestPool::try_open_on("crash", options, std::move(heir), false).value());
  const medium::Trace trace = second->end_trace();
  pool.reset();

  const auto look = [warm](auto& tx, const Root& r, const crash::Crash&) {
    crash::Verdict verdict;
    const std::uint64_t count = tx(r.count);
    verdict.digest = count + 1;
    if (count < warm || count > warm + 1 || (count % 2 != 0) != (tx(r.block) != nullptr))
      verdict.problem = "neither before nor after the transaction: count " + std::to_string(count);
    return verdict;
  };
  crash::RecoveredPool<Root, decltype(look)> subject(e.recover, look);
  auto arena = crash::Arena::make(geometry).value();
  crash::ExploreOptions how;
  how.model = model;
  how.depth = 1;
  // REWIND fences at each record.
  if (is_rewind(e)) how.every = e.family.starts_with("rewind-2l") ? 29 : 5;
  crash::Seen seen;
  crash::Explorer explorer(*arena, image, subject, how, seen);
  explorer.run(trace);
  counts += explorer.counts();
  failure = explorer.failure();
  return true;
}

TEST_P(Killed, BeforeAnyFenceOfATransactionAndThenWithoutPower) {
  crash::Counts counts;
  for (const Configuration& configuration : configurations) {
    if (!configuration.waits()) continue;  // what no thread waits for, no step fences
    for (const std::uint64_t warm : {4, 5}) {
      std::uint64_t fence = 0;
      for (std::string failure;; ++fence) {
        const auto model = crash::Model::adversarial;
        if (!explore(GetParam(), configuration, warm, fence, model, counts, failure)) break;
        ASSERT_EQ("", failure) << configuration.name << ", " << warm
                               << " transactions before, killed before fence " << fence;
      }
      EXPECT_GT(fence, 0U) << configuration.name;
    }
  }
  this->RecordProperty("distinct", static_cast<int>(counts.distinct));
}

}  // namespace
}  // namespace perdure::test
