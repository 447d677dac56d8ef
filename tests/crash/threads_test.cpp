// SPDX-License-Identifier: BSD-3-Clause
//
// Power cuts with several threads, including the library's own, one at a time by a seeded
// scheduler: a failing seed fails again.
//
// Threads transfer between accounts, count their transactions, record what they have read of each
// other's counts, and keep blocks in the heap.
// Recovery must give whole transfers; of each thread at least the transactions acknowledged to it,
// whose ids are not given again (LAW-2); no transaction that had read from a lost one (LAW-1); the
// blocks that are owned (LAW-6); the same after a power cut in recovery (LAW-5).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "perdure/perdure.hpp"
#include "perdure/tm/rtm_stand_in.hpp"
#include "testing/crashtest.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/crash/scheduler.hpp"
#include "tests/engine/suite.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::test {
namespace {

constexpr std::size_t most = 3, accounts = 8, slots = 3;
constexpr unsigned warm = 5;  // transactions before the explored ones

struct Root {
  std::array<p<std::uint64_t>, accounts> account;
  struct Own {  // of one thread, in lines of its own
    p<std::uint64_t> counter;
    // [u]: the value of u's counter that its latest reading transaction saw.
    std::array<p<std::uint64_t>, most> seen;
    // Of counter and seen: one transaction wrote all of them, or none.
    p<std::uint64_t> stamp;
    std::array<ptr<std::uint64_t>, slots> block;
    std::array<p<std::uint64_t>, 24> copy;  // of the counter: rings of the minimum size wrap soon
  };
  std::array<Own, most> own;
};
static_assert(sizeof(Root::Own) == 256 && sizeof(Root) % 64 == 0);

std::uint64_t stamp_of(std::uint64_t count, std::uint64_t seen) {
  return base::mix(count ^ base::mix(seen + 1));
}

using conformance::Configuration;
using conformance::configurations;

struct Recorded {
  medium::Trace trace;
  std::unique_ptr<crash::Image> image;
  crash::Arena::Geometry geometry;
  std::array<std::vector<std::uint64_t>, most> ids;  // of each thread's transactions
  std::uint64_t switches = 0;
  bool preempted = false;
};

/// Transaction number i of thread t. Every other one accesses nothing of another thread, so that
/// others may commit while it is delayed.
template <class Tx>
void transfer(Tx& tx, Root& r, std::size_t t, unsigned i, std::uint64_t choice,
              std::size_t threads) {
  crash::Random inner(choice);
  Root::Own& own = r.own[t];
  const std::size_t from = inner() % accounts, to = inner() % accounts;
  const bool alone = choice % 2 == 0;
  if (!alone && tx(r.account[from]) > 0) {
    --tx(r.account[from]);
    Scheduler::point();
    ++tx(r.account[to]);
  }
  std::uint64_t seen = 0;
  for (std::size_t u = 0; u < threads; ++u) {
    if (u == t) continue;
    if (!alone) tx(own.seen[u]) = tx(r.own[u].counter);
    seen = seen * 1000 + tx(own.seen[u]);
  }
  Scheduler::point();
  auto& slot = own.block[inner() % slots];
  if (std::uint64_t* const block = tx(slot); block != nullptr) {
    tx.free(block);
    tx(slot) = nullptr;
  } else {
    tx(slot) = reinterpret_cast<std::uint64_t*>(tx.alloc(16 << inner() % 6));
  }
  ++tx(own.counter);
  for (auto& c : own.copy) tx(c) = i + 1;
  tx(own.stamp) = stamp_of(i + 1, seen);
}

/// `lies`: claims that a transaction is acknowledged when its update() returns, durable or not.
/// `schedule`: the scheduler's seed, if it differs from the program's.
/// `preempt`: two threads with programs of their own; the first one, or a thread of the library, is
/// delayed at that point of its last three steps (Scheduler::preempt_at).
Recorded run(const EngineInfo& e, const Configuration& configuration, std::uint64_t seed,
             std::size_t threads, unsigned each, bool lies = false, std::uint64_t schedule = 0,
             std::uint64_t preempt = 0) {
  watch_again();  // the limit is for one run
  crashtest::Plan plan;
  plan.seed = seed;
  plan.durability = configuration.durability;
  plan.like_a_file = configuration.like_a_file;
  // One for the main thread, one for the first worker, the others share the last one.
  plan.rings = 3;
  plan.engine = e.name;
  plan.ring_bytes = !configuration.like_a_file ? ring_of_at_least(e, 8192)
                    : is_undo(e)               ? 1 << 20
                                               : 65536;
  plan.data_bytes = plan.max_data_bytes = 16 * pool::chunk_bytes;
  plan.event = Scheduler::point;
  // Four pages: most commits give some back.
  if (e.limits_resident && seed % 2 == 0) plan.max_resident = 16 << 10;
  if (seed % 3 == 1) plan.engine_options = ShadowOptions{.helper = ShadowOptions::Helper::on};
  // Of hardware transactions there are no events between their end and the record's first byte.
  tm::RtmStandIn::limits().point = [] { Scheduler::point(); };
  auto made = medium::CrashMedium::make(crashtest::detail::medium_of(plan)).value();
  medium::CrashMedium& medium = *made;
  Recorded result;
  Scheduler::start(schedule != 0 ? schedule : seed);
  {
    auto pool = AnyPool<Root>::try_open_on("crash", crashtest::detail::options_of(plan, e),
                                           std::move(made), true)
                    .value();
    pool.update([](auto& tx, Root& r) {
          for (auto& a : r.account) tx(a) = 100;
        })
        .wait();
    result.geometry = {medium.log_bytes(), medium.max_data_bytes(), pool.header().base,
                       medium.append_unit(), medium.fence_is_sync()};
    result.image = std::make_unique<crash::Image>(medium.begin_trace(), medium.data_bytes());
    const auto transact = [&](std::size_t t, unsigned i, std::uint64_t choice) {
      medium.begin(i, static_cast<std::uint32_t>(t));
      const auto receipt =
          pool.update([&](auto& tx, Root& r) { transfer(tx, r, t, i, choice, threads); });
      result.ids[t].push_back(receipt.id());
      const bool told = configuration.waits() || lies ||
                        (choice % 4 == 0 ? (receipt.wait(), true) : receipt.durable());
      if (told) medium.done(i + 1, static_cast<std::uint32_t>(t));
    };
    std::vector<std::thread> workers;
    workers.reserve(threads);
    std::atomic<int> stage{0};
    const auto until = [&](int s) {
      while (stage < s) std::this_thread::yield();
    };
    if (preempt != 0) {
      workers.emplace_back([&] {
        for (unsigned i = 0; i < warm; ++i) transact(0, i, i * 2);
        stage = 1;
        until(2);
        transact(0, warm, 4);
        pool.checkpoint();
        transact(0, warm + 1, 8);
        stage = 3;
      });
      workers.emplace_back([&] {
        until(1);
        for (unsigned i = 0; i < warm; ++i) transact(1, i, i * 2);
        Scheduler::preempt_at(preempt);
        stage = 2;
        while (Scheduler::preempting() && stage != 3) std::this_thread::yield();
        result.preempted = stage != 3;
        struct Oops {};
        for (unsigned i = 0; is_undo(e) && i < 14; ++i) {
          // Commits wait for log space at half a ring; transactions that abort fill it.
          EXPECT_THROW(pool.update([&](auto& tx, Root& r) {
            transfer(tx, r, 1, warm, 0, threads), throw Oops();
          }),
                       Oops);
        }
        for (unsigned i = warm; i < each; ++i) {
          transact(1, i, i * 2);
          // shadow: a ring is filled before.
          if (is_undo(e) ? i % 4 == 0 : i + 3 == each) pool.checkpoint();
        }
      });
    } else {
      for (std::size_t t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
          crash::Random random(seed * 100 + t);
          for (unsigned i = 0; i < each; ++i) {
            const std::uint64_t choice = random();
            transact(t, i, choice);
            if (choice % 32 == 0) pool.checkpoint();
          }
        });
    }
    for (auto& w : workers) w.join();
    pool.close();
    result.trace = medium.end_trace();
  }
  result.switches = Scheduler::switches();
  Scheduler::stop();
  return result;
}

std::string explore(const EngineInfo& e, Recorded& run, std::size_t threads, crash::Model model,
                    std::uint64_t seed, crash::Counts& counts, std::uint64_t from = 0,
                    std::uint64_t to = ~std::uint64_t{0}, bool briefly = false) {
  const auto look = [&](auto& tx, const Root& r, const crash::Crash& crash) {
    crash::Verdict verdict;
    std::uint64_t sum = 0, digest = 1;
    const auto fold = [&](std::uint64_t v) { digest = base::mix(digest ^ base::mix(v + 1)); };
    for (const auto& a : r.account) sum += tx(a), fold(tx(a));
    if (sum != accounts * 100) verdict.problem = "half a transfer: " + std::to_string(sum);
    for (std::size_t t = 0; t < threads; ++t) {
      const std::uint64_t count = tx(r.own[t].counter);
      fold(count);
      if (count < crash.min_of[t])
        verdict.problem = "thread " + std::to_string(t) + " was told of " +
                          std::to_string(crash.min_of[t]) + " transactions, " +
                          std::to_string(count) + " are there";
      // Timestamps belong to a session: recovery counts with numbers of its own, which never reach
      // them.
      if (const std::uint64_t told = crash.min_of[t];
          told != 0 && !has_timestamps(e) && crash.last_id < run.ids[t][told - 1])
        verdict.problem = "thread " + std::to_string(t) + " was told of transaction " +
                          std::to_string(run.ids[t][told - 1]) + ", and the next one will be " +
                          std::to_string(crash.last_id + 1);
      std::uint64_t seen = 0;
      for (std::size_t u = 0; u < threads; ++u) {
        if (u == t) continue;
        const std::uint64_t of_u = tx(r.own[t].seen[u]);
        seen = seen * 1000 + of_u;
        if (of_u > tx(r.own[u].counter))
          verdict.problem =
              "thread " + std::to_string(t) + " had read of " + std::to_string(u) + " what is lost";
      }
      bool whole = count == 0 || tx(r.own[t].stamp) == stamp_of(count, seen);
      for (const auto& c : r.own[t].copy) whole = whole && tx(c) == count;
      if (!whole)
        verdict.problem =
            "thread " + std::to_string(t) + ": half of transaction " + std::to_string(count);
    }
    for (const auto& own : r.own)
      for (const auto& b : own.block) fold(reinterpret_cast<std::uintptr_t>(tx(b)));
    verdict.digest = digest;
    return verdict;
  };
  crash::RecoveredPool<Root, decltype(look)> subject(e.recover, look);
  auto arena = crash::Arena::make(run.geometry).value();
  crash::ExploreOptions options;
  options.model = model;
  options.seed = seed;
  options.outer.singles = 4;
  options.every = briefly ? 1 : heavy(e) > 1 ? 19 : 1;
  if (briefly) {
    options.depth = 0;
    options.outer = {8, 4, 2, 2};
  }
  options.from = from;
  options.to = to;
  crash::Seen seen;
  watch_again();
  crash::Explorer explorer(*arena, *run.image, subject, options, seen);
  explorer.run(run.trace);
  counts += explorer.counts();
  return explorer.failure();
}

class CrashUnderThreads : public EngineTest {};
// Of REWIND's compositions those that share most between threads: a group, and with force the END
// that stays in a log. Of Blurred Persistence's systems those in which a thread's log waits for
// others.
std::vector<EngineInfo> explored() {
  return engines_that([](const EngineInfo& e) {
    return is_durable(e) && isolates(e) &&
           (!is_rewind(e) || e.family == "rewind-1l-nfp-batch" ||
            (e.family == "rewind-1l-fp-batch" && e.tm == "stm")) &&
           (!is_blurred(e) || e.family == "bppm" || e.family == "redo-mne-async");
  });
}
ENGINE_SUITE(CrashUnderThreads, explored);

TEST_P(CrashUnderThreads, LosesNothing) {
  crash::Counts counts;
  for (std::size_t w = 0; w < std::size(configurations); ++w)
    for (std::uint64_t seed = 1; seed <= (scale > 1 ? 1 : 3); ++seed) {
      const std::size_t threads = 2 + seed % 2;
      // Rings have wrapped by the end; a third of the program is explored, counted by the first
      // thread's transactions.
      const unsigned each = is_undo(GetParam()) || is_softwrap(GetParam()) ? 21
                            : is_rewind(GetParam())                        ? 12
                            : is_blurred(GetParam())                       ? 24
                                                                           : 36,
                     third = each / 3;
      Recorded r = run(GetParam(), configurations[w], seed, threads, each);
      const auto model = seed % 2 == 0 ? crash::Model::px86 : crash::Model::adversarial;
      ASSERT_EQ("", explore(GetParam(), r, threads, model, seed, counts, seed % 3 * third,
                            (seed % 3 + 1) * third))
          << configurations[w].name << ", seed " << seed;
      EXPECT_GT(r.switches, 20U);
    }
  EXPECT_GT(counts.distinct, 2000U / scale);
  this->RecordProperty("distinct", static_cast<int>(counts.distinct));
}

// One thread's transaction, checkpoint and transaction are delayed at each of their points in turn,
// while another thread fills its ring and makes checkpoints: this finds whatever one preemption can
// break.
TEST_P(CrashUnderThreads, OnePreemptionAnywhereLosesNothing) {
  crash::Counts counts;
  for (const Configuration& configuration : {configurations[0], configurations[2]}) {
    std::uint64_t at = 1;
    for (bool more = true; more; at += scale * (is_dudetm(GetParam())     ? 20
                                                : is_rewind(GetParam())   ? 50
                                                : is_blurred(GetParam())  ? 10
                                                : is_softwrap(GetParam()) ? 3
                                                                          : 1)) {
      // Such engines have many threads.
      Recorded r = run(GetParam(), configuration, 1, 2, warm + 18, false, 0, at);
      more = r.preempted;
      ASSERT_EQ("", explore(GetParam(), r, 2, crash::Model::adversarial, at, counts, warm + 1,
                            ~std::uint64_t{0}, true))
          << configuration.name << ", held back at point " << at;
    }
    EXPECT_GT(at, 20U) << configuration.name;
  }
  this->RecordProperty("distinct", static_cast<int>(counts.distinct));
}

TEST_P(CrashUnderThreads, TheSameSeedIsTheSameRun) {
  for (const Configuration& configuration : configurations) {
    const auto a = run(GetParam(), configuration, 7, 2, 10),
               b = run(GetParam(), configuration, 7, 2, 10);
    EXPECT_EQ(a.trace.events, b.trace.events) << configuration.name;
    EXPECT_EQ(a.trace.words, b.trace.words) << configuration.name;
    EXPECT_EQ(a.switches, b.switches);
    bool other = false;  // whether other schedules of the same pool and program ran
    for (std::uint64_t schedule = 8; schedule < 16 && !other; ++schedule)
      other =
          run(GetParam(), configuration, 7, 2, 10, false, schedule).trace.events != a.trace.events;
    EXPECT_TRUE(other) << configuration.name;
  }
}

TEST(CrashUnderThreadsToo, AnAcknowledgementThatIsALieIsFound) {
  crash::Counts counts;
  Recorded r = run(*engine::find_instance("shadow"), configurations[2], 1, 2, 12, true);
  EXPECT_NE(std::string::npos,
            explore(*engine::find_instance("shadow"), r, 2, crash::Model::px86, 1, counts)
                .find("was told of"));
}

}  // namespace
}  // namespace perdure::test
