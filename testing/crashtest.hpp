// SPDX-License-Identifier: BSD-3-Clause
//
// crashtest: takes a program apart that changes a pool in steps, and looks at what every power cut
// would leave of it.
//
//   struct Transfers {
//     struct Root { std::array<p<std::int64_t>, 8> account; };
//     // transactions
//     template <class Pool> void step(Pool& pool, crashtest::Step& s) { pool.update(...); }
//     // empty: all is well
//     template <class Tx> std::string check(Tx& tx, const Root& r, const crash::Crash& c) { ... }
//     // a hash of the contents
//     template <class Tx> std::uint64_t digest(Tx& tx, const Root& r) { ... }
//   };
//   const auto report = perdure::crashtest::explore<Transfers>({.steps = 60});
//
// Of check and digest either may be missing. With digest a recovered pool must be in a state in
// which the program has been after a step: not older than the last that was acknowledged, and a
// crash in recovery must end in the same state. Whatever they say, the heap is audited and compared
// with what the root's containers own.
// Between steps the pool is now and then closed, or left as a SIGKILL leaves it, and opened again:
// a step finds it at the same addresses. When something is found, the steps are thinned out to few
// that still show it. Everything follows from the seed, but for the timing of a pool's own threads
// where Plan::start does not take them in hand. A setup(pool), if there is one, runs before the
// first step.
// Thread safety: one exploration at a time in a process; a pool's own threads may run, a step's
// should not.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perdure/api/pool.hpp"
#include "testing/crash_medium.hpp"
#include "testing/recovered.hpp"

namespace perdure::crashtest {

using crash::Crash;

/// What a step is given.
struct Step {
  std::uint64_t number = 0;  ///< 0, 1, ...
  crash::Random random;      ///< its own: leaving out other steps changes nothing of this one
  /// the pool's updates return when they are durable (any durability but async)
  bool waits = true;
  bool acknowledged = true;  ///< set false by a step that returns before what it did is durable
};

/// What explore() is to do. Everything follows from `seed`.
struct Plan {
  std::string engine;  ///< of an Instance with several names: which (any_engine: one of all)
  /// How many steps the program has.
  std::uint64_t steps = 50;
  /// Two plans that differ in this alone explore different programs.
  std::uint64_t seed = 1;
  /// Options::durability of the pool.
  Durability durability = durable;
  bool like_a_file = false;           ///< appends of 4 KiB, fences that are syncs
  EngineOptions engine_options = {};  ///< Options::engine_options
  std::uint32_t rings = 1;            ///< where the order is held
  /// Bytes of each ring of the log.
  std::uint64_t ring_bytes = 16384;
  /// Bytes of the data region at first, and at most.
  std::uint64_t home_bytes = 8 * pool::chunk_bytes, max_home_bytes = 16 * pool::chunk_bytes;
  /// About one step in so many ends with the pool's end, by a close, by a SIGKILL after it, or by
  /// one at any instant in it (where the workload has a digest and can be copied), and with its
  /// opening again, in which it may be killed too. 0: never.
  std::uint64_t reopen = 8;
  crash::ExploreOptions explore;  ///< its seed is not looked at
  /// Whether a failure's steps are thinned out to few that still show it.
  bool shrink = true;
  /// What may keep the pool's own threads in step with the seed (tests/crash/scheduler.hpp): called
  /// before the program, after it, and at each event of the medium. Without, a pool of order
  /// `prefix` has a thread that runs freely, and a run may differ from the next.
  void (*start)(std::uint64_t seed) = nullptr;
  /// See start.
  void (*stop)() = nullptr;
  /// See start.
  void (*event)() noexcept = nullptr;
};

/// What explore() found.
struct Report {
  /// How many power cuts and images were judged.
  crash::Counts counts;
  std::string failure;               ///< empty: nothing was found
  std::vector<std::uint64_t> steps;  ///< numbers of the steps that were run to show the failure
};

namespace detail {

template <class W, class Tx>
concept Digests = requires(W& w, Tx& tx, const typename W::Root& root) {
  { w.digest(tx, root) } -> std::convertible_to<std::uint64_t>;
};
template <class W, class Tx>
concept Checks = requires(W& w, Tx& tx, const typename W::Root& root, const Crash& crash) {
  { w.check(tx, root, crash) } -> std::convertible_to<std::string>;
};

/// The instance that the plan is for: by its name, or the list's first. Throws perdure::error.
template <class Instance>
engine::Entry entry_of(const Plan& plan) {
  std::vector<engine::Entry> all;
  engine::add_entries<Instance>(all);
  for (const engine::Entry& e : all)
    if (plan.engine.empty() || e.name == plan.engine) return e;
  throw error(failure(Code::invalid, "", "engine '" + plan.engine + "'",
                      "a name of the instance that is explored"));
}

inline Options options_of(const Plan& plan, const engine::Entry& entry) {
  Options o;
  o.engine = entry.name;
  o.durability = plan.durability;
  o.isolation = entry.isolation;
  o.creation.threads = plan.rings;
  o.creation.uuid_seed = plan.seed + 1;
  o.engine_options = plan.engine_options;
  engine::Config config;
  config.instance = entry.name;
  config.durability = plan.durability;
  config.threads = plan.rings;
  config.fence_is_sync = plan.like_a_file;
  o.creation.log_size = plan.ring_bytes * entry.identity(config).rings;
  return o;
}

inline medium::CrashOptions medium_of(const Plan& plan) {
  medium::CrashOptions o;
  o.log_bytes = pool::first_ring + plan.ring_bytes * std::max(plan.rings, 1U);
  o.home_bytes = plan.home_bytes;
  o.max_home_bytes = plan.max_home_bytes;
  o.sparse = true;
  o.append_unit = plan.like_a_file ? 4096 : 64;
  o.fence_is_sync = plan.like_a_file;
  if (plan.event != nullptr) o.step = [event = plan.event](medium::Step) { event(); };
  return o;
}

/// of the pool, after a step or in it
enum class End : std::uint8_t { none, closed, killed, killed_within };

/// Runs the steps named and explores them once.
template <class Workload, class Instance>
Report explore_steps(const Plan& plan, const std::vector<std::uint64_t>& steps, crash::Seen& seen) {
  using Root = typename Workload::Root;
  const engine::Entry entry = entry_of<Instance>(plan);
  Workload workload;
  std::vector<std::uint64_t> states;  // digests, before the first step and after each
  std::string failure;
  std::unique_ptr<crash::Image> image;
  medium::Trace trace;
  crash::Arena::Geometry geometry;
  // it counts as a step
  constexpr std::uint64_t set_up =
      requires(Pool<Root, engines<Instance>>& pool) { workload.setup(pool); } ? 1 : 0;
  if (plan.start != nullptr) plan.start(plan.seed);
  {
    const struct Stop {
      void (*stop)();
      ~Stop() {
        if (stop != nullptr) stop();
      }
    } stop{plan.stop};
    auto made = medium::CrashMedium::make(medium_of(plan)).value();
    medium::CrashMedium* medium = made.get();
    using PoolType = Pool<Root, engines<Instance>>;
    // from the very beginning: a pool in the making is none, or whole
    image = std::make_unique<crash::Image>(medium->begin_trace(), medium->home_bytes());
    auto pool = std::make_unique<PoolType>(
        PoolType::try_open_on("crash", options_of(plan, entry), std::move(made), true).value());
    const auto note_state = [&] {
      if constexpr (Digests<Workload, crash::PlainTx>)
        states.push_back(pool->view([&](auto& tx, const Root& root) {
          return static_cast<std::uint64_t>(workload.digest(tx, root));
        }));
    };
    // In one of the next so many events, after a part of it: half the time none of it happens.
    const auto kill_soon = [&](crash::Random& dice, std::uint64_t events) {
      const std::uint64_t after = dice() % events, part = dice() % 16;
      medium->kill_after(after, part < 8 ? 0 : part - 7);
    };
    // Opens what the process left; now and then that one is killed too, while it recovers.
    const auto open_again = [&](crash::Random& dice) {
      for (;;) {
        made = medium->heir();
        pool.reset();  // what it does now, nobody sees
        medium = made.get();
        if (dice() % 2 == 0) kill_soon(dice, 40);
        pool = std::make_unique<PoolType>(
            PoolType::try_open_on("crash", options_of(plan, entry), std::move(made), false)
                .value());
        if (medium->survives()) return;
      }
    };
    geometry = {medium->log_bytes(), medium->max_home_bytes(), pool->header().base,
                medium->append_unit(), medium->fence_is_sync()};
    note_state();
    std::uint64_t done = 0;
    medium->done(done);
    if constexpr (set_up != 0) {
      medium->begin(done);
      workload.setup(*pool);
      pool->view(durable, [](auto&, const Root&) {});
      note_state();
      medium->done(++done);
    }
    // A step that is killed within may have happened or not: the digest says which, and a copy of
    // the workload goes back to before.
    constexpr bool follows = Digests<Workload, crash::PlainTx> && std::copyable<Workload>;
    for (const std::uint64_t number : steps) {
      Step step{number, crash::Random(plan.seed * 0x9e3779b97f4a7c15ULL + number),
                plan.durability != async, true};
      crash::Random dice(base::mix(plan.seed + 0x5e55) + number);
      const auto end = plan.reopen == 0 || dice() % plan.reopen != 0
                           ? End::none
                           : static_cast<End>(1 + dice() % 3);
      // What is not durable yet would be lost with the process: a workload's model does not expect
      // that.
      const auto settle = [&] { pool->view(durable, [](auto&, const Root&) {}); };
      std::optional<Workload> before;  // the step, where it is killed within
      if constexpr (follows)
        if (end == End::killed_within) {
          settle();
          before = workload;
        }
      medium->begin(done);
      if (before) kill_soon(dice, 60);
      workload.step(*pool, step);
      note_state();
      if constexpr (follows)
        if (before && !medium->survives()) {
          const std::uint64_t after = states.back();
          states.pop_back();
          open_again(dice);
          note_state();
          if (states.back() == states[states.size() - 2])
            workload = *before;
          else if (states.back() != after) {
            failure = "after a SIGKILL in step " + std::to_string(number) +
                      " recovery makes a state in which the program never was";
            break;
          }
          step.acknowledged = true;  // by an opening: what recovery makes is durable
        }
      ++done;
      if (step.acknowledged) medium->done(done);
      if (end == End::none || before) continue;
      settle();
      if (end == End::closed) pool->close();
      open_again(dice);
    }
    pool->close();
    medium->done(done);
    trace = medium->end_trace();
  }
  if (!failure.empty()) return {{}, failure, steps};
  const auto look = [&](auto& tx, const Root& root, const Crash& crash) {
    crash::Verdict verdict;
    if constexpr (Digests<Workload, crash::PlainTx>) verdict.digest = workload.digest(tx, root);
    if (!crash.created) return verdict;  // nothing is promised yet of what is in it
    if constexpr (Checks<Workload, crash::PlainTx>) {
      Crash of_steps = crash;
      of_steps.least -= set_up;
      of_steps.most -= set_up;
      if (crash.least >= set_up) verdict.problem = workload.check(tx, root, of_steps);
    }
    if constexpr (Digests<Workload, crash::PlainTx>) {
      const auto from = states.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(
                                             crash.least, states.size() - 1));
      const auto to = states.begin() + static_cast<std::ptrdiff_t>(
                                           std::min<std::uint64_t>(crash.most + 1, states.size()));
      if (verdict.problem.empty() && std::find(from, to, verdict.digest) == to) {
        const auto any = std::find(states.begin(), states.end(), verdict.digest);
        verdict.problem = any == states.end()
                              ? std::string("recovery makes a state in which the program never was")
                              : "recovery makes the state after " +
                                    std::to_string(any - states.begin()) +
                                    " steps, expected one after " + std::to_string(crash.least) +
                                    " to " + std::to_string(crash.most);
      }
    }
    return verdict;
  };
  crash::RecoveredPool<Root, decltype(look)> subject(entry.recover, look);
  auto arena = crash::Arena::make(geometry).value();
  crash::ExploreOptions options = plan.explore;
  options.seed = plan.seed;
  crash::Explorer explorer(*arena, *image, subject, options, seen);
  explorer.run(trace);
  return {explorer.counts(), explorer.failure(), steps};
}

/// Leaves out steps while the failure stays (ddmin, Zeller & Hildebrandt, TSE '02, in its simple
/// form).
template <class Run>
Report thinned(Report found, std::uint64_t tries, Run&& run) {
  for (std::size_t part = std::max<std::size_t>(found.steps.size() / 2, 1); part >= 1 && tries > 0;
       part = part > 1 ? part / 2 : 0) {
    for (std::size_t from = 0; from < found.steps.size() && found.steps.size() > 1 && tries > 0;
         --tries) {
      std::vector<std::uint64_t> fewer = found.steps;
      const std::size_t to = std::min(from + part, fewer.size());
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(from),
                  fewer.begin() + static_cast<std::ptrdiff_t>(to));
      Report r = run(fewer);
      if (r.failure.empty())
        from += part;
      else
        found = std::move(r);
    }
  }
  return found;
}

}  // namespace detail

/// Explores a workload on one instance of the registry. Throws perdure::error where the pool itself
/// fails.
template <class Workload, class Instance = shadow>
Report explore(const Plan& plan, crash::Seen& seen) {
  std::vector<std::uint64_t> steps(plan.steps);
  std::iota(steps.begin(), steps.end(), std::uint64_t{0});
  Report report = detail::explore_steps<Workload, Instance>(plan, steps, seen);
  if (report.failure.empty() || !plan.shrink) return report;
  const crash::Counts counts = report.counts;
  report = detail::thinned(std::move(report), 100, [&](const std::vector<std::uint64_t>& fewer) {
    crash::Seen afresh;
    return detail::explore_steps<Workload, Instance>(plan, fewer, afresh);
  });
  report.counts = counts;
  report.failure += "\n  seed " + std::to_string(plan.seed) + ", steps";
  for (const std::uint64_t s : report.steps) report.failure += " " + std::to_string(s);
  return report;
}
/// The same, with images of its own.
template <class Workload, class Instance = shadow>
Report explore(const Plan& plan = {}) {
  crash::Seen seen;
  return explore<Workload, Instance>(plan, seen);
}

}  // namespace perdure::crashtest
