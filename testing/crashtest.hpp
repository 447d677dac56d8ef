// SPDX-License-Identifier: BSD-3-Clause
//
// crashtest: runs a program that changes a pool in steps, and checks what every power cut would
// leave of the pool.
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
// Either check or digest may be missing. With digest, a recovered pool must be in a state in which
// the program was after some step, no older than the last acknowledged one, and a crash in recovery
// must end in the same state. Whatever they say, the heap is audited and compared with what the
// root's containers own.
// Between steps the pool is sometimes closed, or left as a SIGKILL leaves it, and opened again: a
// step finds it at the same addresses. When a failure is found, steps are removed as long as the
// failure remains. Everything follows from the seed, except the timing of a pool's own threads
// where Plan::start does not control them. A setup(pool), if there is one, runs before the first
// step.
// Thread safety: one exploration at a time in a process. A pool's own threads may run; a step
// should not start threads.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/engine/engine_base.hpp"
#include "testing/crash_medium.hpp"
#include "testing/recovered.hpp"

namespace perdure::crashtest {

using crash::Crash;

/// The argument of a step.
struct Step {
  std::uint64_t number = 0;  ///< 0, 1, ...
  crash::Random random;      ///< its own: removing other steps changes nothing in this one
  /// the pool's updates return when they are durable (any durability except async)
  bool waits = true;
  bool acknowledged = true;  ///< a step that returns before its changes are durable sets it false
};

/// What explore() is to do. Everything follows from `seed`.
struct Plan {
  std::string engine;  ///< selects one of an Instance with several names (any_engine: one of all)
  /// How many steps the program has.
  std::uint64_t steps = 50;
  /// Two plans that differ in this alone explore different programs.
  std::uint64_t seed = 1;
  /// Options::durability of the pool.
  Durability durability = durable;
  bool like_a_file = false;           ///< appends of 4 KiB, fences that are syncs
  EngineOptions engine_options = {};  ///< Options::engine_options
  std::uint64_t max_resident = 0;     ///< Options::max_resident
  std::uint32_t rings = 1;            ///< for the strict order
  /// Bytes of each ring of the log.
  std::uint64_t ring_bytes = 16384;
  /// Bytes of the data region at first, and at most.
  std::uint64_t data_bytes = 8 * pool::chunk_bytes, max_data_bytes = 16 * pool::chunk_bytes;
  /// The pool's max_size at creation, in bytes, less than max_data_bytes. Each opening of an
  /// existing pool raises it by the same number of bytes, up to max_data_bytes. 0: max_size is
  /// always max_data_bytes.
  std::uint64_t first_limit = 0;
  /// Options::checksums, from this opening of the pool on: 0: it is made with them; never: without.
  /// They take up to 5 MiB of data region in addition to data_bytes and max_data_bytes; where the
  /// pool gets them later, its limit is raised for them. Not with first_limit.
  std::uint64_t checksums_from = never;
  /// Of checksums_from: at no opening.
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  /// About one step in `reopen` ends with the pool's end, by a close, by a SIGKILL after the step,
  /// or by a SIGKILL at any instant within it (if the workload has a digest and can be copied), and
  /// with its opening again, in which the process may be killed too. 0: never.
  std::uint64_t reopen = 8;
  crash::ExploreOptions explore;  ///< its seed is ignored
  /// Whether a failure's steps are thinned out to few that still show it.
  bool shrink = true;
  /// Functions that may keep the pool's own threads in step with the seed
  /// (tests/crash/scheduler.hpp), called before the program, after it, and at each event of the
  /// medium. Without them a pool's own thread runs freely (in the pipelined order;
  /// in the strict one, where ShadowOptions::helper is on), and two runs may differ.
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

/// The instance that the plan selects: by its name, or the list's first. Throws perdure::error.
template <class Instance>
engine::EngineInfo entry_of(const Plan& plan) {
  std::vector<engine::EngineInfo> all;
  engine::add_entries<Instance>(all);
  for (const engine::EngineInfo& e : all)
    if (plan.engine.empty() || e.name == plan.engine) return e;
  throw error(failure(Code::invalid, "", "engine '" + plan.engine + "'",
                      "a name of the instance that is explored"));
}

/// `openings`: the number of openings since the creation.
inline Options options_of(const Plan& plan, const engine::EngineInfo& entry,
                          std::uint64_t openings = 0) {
  Options o;
  o.engine = entry.name;
  o.durability = plan.durability;
  o.isolation = entry.isolation;
  o.creation.threads = plan.rings;
  o.creation.uuid_seed = plan.seed + 1;
  if (plan.first_limit != 0)
    o.creation.max_size = std::min(plan.max_data_bytes, plan.first_limit * (openings + 1));
  o.creation.raise_max_size = plan.first_limit != 0 && openings != 0;
  o.engine_options = plan.engine_options;
  o.max_resident = plan.max_resident;
  o.checksums = plan.checksums_from <= openings;
  if (plan.checksums_from != 0 && plan.checksums_from != Plan::never) {
    // The data region may have grown up to its limit: the checksums need a raised one.
    o.creation.max_size = plan.max_data_bytes + (o.checksums ? 5 << 20 : 0);
    o.creation.raise_max_size = o.checksums;
  }
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
  o.data_bytes = plan.data_bytes;
  o.max_data_bytes = plan.max_data_bytes;
  if (plan.checksums_from == 0) o.data_bytes += 1 << 20;
  if (plan.checksums_from != Plan::never) o.max_data_bytes += 5 << 20;
  o.sparse = true;
  o.append_unit = plan.like_a_file ? 4096 : 64;
  o.fence_is_sync = plan.like_a_file;
  if (plan.event != nullptr) o.step = [event = plan.event](medium::Step) { event(); };
  return o;
}

/// How the pool ends, after a step or within it.
enum class End : std::uint8_t { none, closed, killed, killed_within };

/// Runs the given steps and explores them once.
template <class Workload, class Instance>
Report explore_steps(const Plan& plan, const std::vector<std::uint64_t>& steps, crash::Seen& seen) {
  using Root = typename Workload::Root;
  const engine::EngineInfo entry = entry_of<Instance>(plan);
  Workload workload;
  std::vector<std::uint64_t> states;  // digests, before the first step and after each
  // Of a step in which the process was killed and that did not happen: what it would have made.
  std::map<std::uint64_t, std::uint64_t> undone;
  std::string failure;
  std::uint64_t openings = 0;  // of the existing pool
  std::unique_ptr<crash::Image> image;
  medium::Trace trace;
  crash::Arena::Geometry geometry;
  // It counts as a step.
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
    // From the very beginning: a pool under creation is absent or whole.
    image = std::make_unique<crash::Image>(medium->begin_trace(), medium->data_bytes());
    auto pool = std::make_unique<PoolType>(
        PoolType::try_open_on("crash", options_of(plan, entry, 0), std::move(made), true).value());
    const auto note_state = [&] {
      if constexpr (Digests<Workload, crash::PlainTx>)
        states.push_back(pool->view([&](auto& tx, const Root& root) {
          return static_cast<std::uint64_t>(workload.digest(tx, root));
        }));
    };
    // Kills the process at one of the next `events` events, after a part of it: in half of the
    // cases none of it happens. Every other kill is before a fence, where most of what a process
    // leaves is visible and not durable.
    const auto kill_soon = [&](crash::Random& dice, std::uint64_t events) {
      if (dice() % 2 == 0) return medium->kill_at_fence(dice() % (1 + dice() % (events / 3)));
      const std::uint64_t after = dice() % events, part = dice() % 16;
      medium->kill_after(after, part < 8 ? 0 : part - 7);
    };
    // Opens what the process left; sometimes the new process is killed too, while it recovers.
    const auto open_again = [&](crash::Random& dice) {
      for (;;) {
        made = medium->heir();
        pool.reset();  // nothing records what it does now
        medium = made.get();
        if (dice() % 2 == 0) kill_soon(dice, 40);
        pool = std::make_unique<PoolType>(PoolType::try_open_on("crash",
                                                                options_of(plan, entry, ++openings),
                                                                std::move(made), false)
                                              .value());
        if (medium->survives()) return;
      }
    };
    geometry = {medium->log_bytes(), medium->max_data_bytes(), pool->header().base,
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
    // A step with a kill in it may have happened or not: the digest decides, and a copy of the
    // workload restores the earlier state.
    constexpr bool follows = Digests<Workload, crash::PlainTx> && std::copyable<Workload>;
    for (const std::uint64_t number : steps) {
      Step step{number, crash::Random(plan.seed * 0x9e3779b97f4a7c15ULL + number),
                plan.durability != async, true};
      crash::Random dice(base::mix(plan.seed + 0x5e55) + number);
      const auto end = plan.reopen == 0 || dice() % plan.reopen != 0
                           ? End::none
                           : static_cast<End>(1 + dice() % 3);
      // Everything not yet durable would be lost with the process, which a workload's model does
      // not expect.
      const auto settle = [&] { pool->view(durable, [](auto&, const Root&) {}); };
      std::optional<Workload> before;  // the workload before a step in which the process is killed
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
          if (states.back() == states[states.size() - 2]) {
            workload = *before;
            undone[states.size() - 1] = after;
          } else if (states.back() != after) {
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
    if (!crash.created) return verdict;  // nothing is promised yet about its contents
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
      // Up to the next opening's end, what a killed process had begun may have happened: its log's
      // blocks, which the kill lost, may have been on their way to the device.
      const auto lost = undone.find(crash.most);
      const bool happened =
          lost != undone.end() && crash.least < crash.most && lost->second == verdict.digest;
      if (verdict.problem.empty() && !happened && std::find(from, to, verdict.digest) == to) {
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

/// Removes steps while the failure remains (ddmin, Zeller & Hildebrandt, TSE '02, in its simple
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

/// Explores a workload on one instance of the registry. Throws perdure::error if the pool itself
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
