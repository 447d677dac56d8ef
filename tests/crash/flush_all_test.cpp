// SPDX-License-Identifier: BSD-3-Clause
//
// Power cuts with two threads, for the engines that publish "the data region has every transaction
// up to X" after a flush_all: one thread checkpoints, or starts its log anew, while the other one
// has begun to write a line back and has not fenced. A seed decides where threads change, also
// between any two steps of the marking code (perdure/medium/marked.hpp).
//
// A transaction allocates a block of a class that both threads use, so that they share bitmap
// lines, and then one of a class that is new: making its span writes back all lines that the
// transaction has stored to in the heap. A part of the transactions throws, and REWIND writes the
// old values back. Recovery must give a sound heap, each thread's acknowledged transactions, and no
// transaction in part.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "perdure/perdure.hpp"
#include "testing/crashtest.hpp"
#include "tests/crash/scheduler.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

constexpr std::size_t threads = 2, shared_blocks = 6, new_classes = 12;

struct Root {
  struct Own {  // of one thread, in lines of its own
    p<std::uint64_t> counter;
    std::array<ptr<std::uint64_t>, shared_blocks> shared;
    std::array<ptr<std::uint64_t>, new_classes> of_class;
    std::array<p<std::uint64_t>, 13> copy;  // of the counter
  };
  std::array<Own, threads> own;
};
static_assert(sizeof(Root::Own) % 64 == 0);

struct Oops {};

/// Thread t's transaction number i.
template <class Tx>
void change(Tx& tx, Root& r, std::size_t t, unsigned i) {
  Root::Own& own = r.own[t];
  ++tx(own.counter);
  for (auto& c : own.copy) tx(c) = i + 1;
  auto& shared = own.shared[i % shared_blocks];
  if (std::uint64_t* const block = tx(shared); block != nullptr) {
    tx.free(block);
    tx(shared) = nullptr;
  } else {
    tx(shared) = reinterpret_cast<std::uint64_t*>(tx.alloc(16));
  }
  if (i % 2 == 0 && i / 2 < new_classes)  // class 1 + 2 * (i / 2) + t, one chunk per span
    tx(own.of_class[i / 2]) = reinterpret_cast<std::uint64_t*>(
        tx.alloc(pool::class_bytes(1 + i + static_cast<std::uint32_t>(t))));
}

struct Recorded {
  medium::Trace trace;
  std::unique_ptr<crash::Image> image;
  crash::Arena::Geometry geometry;
  bool preempted = false;
};

constexpr unsigned warm = 6;  // transactions of each thread before the one that is delayed

/// `preempt`: with 0, a seed decides when threads change; otherwise thread 0 is delayed at that
/// point of one transaction (Scheduler::preempt_at), while thread 1 makes a checkpoint.
Recorded run(const EngineInfo& e, std::uint64_t seed, unsigned each, std::uint64_t preempt) {
  crashtest::Plan plan;
  plan.seed = seed;
  plan.rings = threads + 1;  // the last one is the main thread's
  plan.engine = e.name;
  plan.ring_bytes = ring_of_at_least(e, 8192);
  plan.data_bytes = plan.max_data_bytes = 40 * pool::chunk_bytes;
  plan.event = Scheduler::point;
  auto made = medium::CrashMedium::make(crashtest::detail::medium_of(plan)).value();
  medium::CrashMedium& medium = *made;
  Recorded result;
  Scheduler::start(seed);
  {
    auto pool = AnyPool<Root>::try_open_on("crash", crashtest::detail::options_of(plan, e),
                                           std::move(made), true)
                    .value();
    result.geometry = {medium.log_bytes(), medium.max_data_bytes(), pool.header().base,
                       medium.append_unit(), medium.fence_is_sync()};
    result.image = std::make_unique<crash::Image>(medium.begin_trace(), medium.data_bytes());
    const auto transact = [&](std::size_t t, unsigned i) {
      medium.begin(i, static_cast<std::uint32_t>(t));
      pool.update([&](auto& tx, Root& r) { change(tx, r, t, i); });
      medium.done(i + 1, static_cast<std::uint32_t>(t));
    };
    const auto by_chance = [&](std::size_t t) {
      crash::Random random(seed * threads + t);
      for (unsigned i = 0; i < each; ++i) {
        if (random() % 4 == 0) {
          EXPECT_THROW(pool.update([&](auto& tx, Root& r) { change(tx, r, t, i), throw Oops(); }),
                       Oops);
        }
        transact(t, i);
        if (random() % 3 == 0) pool.checkpoint();
      }
    };
    std::atomic<int> stage{0};
    const auto until = [&](int s) {
      while (stage < s) std::this_thread::yield();
    };
    const auto held_back = [&] {
      for (unsigned i = 0; i < warm; ++i) transact(0, i);
      stage = 1;
      until(2);
      transact(0, warm);
      stage = 3;
    };
    const auto publishes = [&] {
      until(1);
      for (unsigned i = 0; i < warm; ++i) transact(1, i);
      Scheduler::preempt_at(preempt);
      stage = 2;
      while (Scheduler::preempting() && stage != 3) std::this_thread::yield();
      result.preempted = stage != 3;
      pool.checkpoint();
    };
    std::vector<std::thread> workers;
    workers.reserve(threads);
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        if (preempt == 0) {
          by_chance(t);
        } else if (t == 0) {
          held_back();
        } else {
          publishes();
        }
      });
    for (auto& w : workers) w.join();
    pool.close();
    result.trace = medium.end_trace();
  }
  Scheduler::stop();
  return result;
}

/// Explores from the points at which thread 0 had begun this number of transactions.
std::string explore(const EngineInfo& e, Recorded& run, std::uint64_t seed, crash::Counts& counts,
                    std::uint64_t from) {
  const auto look = [](auto& tx, const Root& r, const crash::Crash& crash) {
    crash::Verdict verdict;
    for (std::size_t t = 0; t < threads; ++t) {
      const std::uint64_t count = tx(r.own[t].counter);
      if (count < crash.min_of[t])
        verdict.problem = "thread " + std::to_string(t) + " was told of " +
                          std::to_string(crash.min_of[t]) + " transactions, " +
                          std::to_string(count) + " are there";
      for (const auto& c : r.own[t].copy)
        if (tx(c) != count)
          verdict.problem =
              "thread " + std::to_string(t) + ": half of transaction " + std::to_string(count);
    }
    return verdict;
  };
  crash::RecoveredPool<Root, decltype(look)> subject(e.recover, look);
  auto arena = crash::Arena::make(run.geometry).value();
  crash::ExploreOptions options;
  options.model = seed % 2 == 0 ? crash::Model::px86 : crash::Model::adversarial;
  options.seed = seed;
  options.depth = 0;             // recovery is one thread, which other tests interrupt
  options.outer = {4, 3, 1, 1};  // a loss shows where only the durable state is left
  options.every = is_rewind(e) && from == 0 ? 5 : 1;
  options.from = from;
  crash::Seen seen;
  crash::Explorer explorer(*arena, *run.image, subject, options, seen);
  explorer.run(run.trace);
  counts += explorer.counts();
  return explorer.failure();
}

class FlushAllUnderThreads : public EngineTest {};
std::vector<EngineInfo> publishing() {
  return engines_that([](const EngineInfo& e) {
    return isolates(e) && (e.family == "rewind-1l-nfp-batch" ||
                           e.family == "rewind-1l-nfp-optimized" || e.family == "bppm" ||
                           e.family == "redo-vcbp" || (is_softwrap(e) && !aliases_for_all(e)));
  });
}
ENGINE_SUITE(FlushAllUnderThreads, publishing);

TEST_P(FlushAllUnderThreads, LosesNothingThatACheckpointCovers) {
  crash::Counts counts;
  for (std::uint64_t seed = 1; seed <= 24 / heavy(GetParam()); ++seed) {
    Recorded r = run(GetParam(), seed, 24, 0);
    ASSERT_EQ("", explore(GetParam(), r, seed, counts, 0)) << "seed " << seed;
  }
  EXPECT_GT(counts.distinct, 500U);
  this->RecordProperty("distinct", static_cast<int>(counts.distinct));
}

TEST_P(FlushAllUnderThreads, ACheckpointBesideATransactionThatIsHeldBackAnywhereLosesNothing) {
  crash::Counts counts;
  std::uint64_t at = 1;
  for (bool more = true; more; at += is_rewind(GetParam()) ? 3 : 1) {
    Recorded r = run(GetParam(), 1, 0, at);
    more = r.preempted;
    ASSERT_EQ("", explore(GetParam(), r, at, counts, warm + 1)) << "held back at point " << at;
  }
  EXPECT_GT(at, 30U);
  this->RecordProperty("distinct", static_cast<int>(counts.distinct));
}

}  // namespace
}  // namespace perdure::test
