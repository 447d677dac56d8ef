// SPDX-License-Identifier: BSD-3-Clause
//
// Explores a workload on every durable engine of the registry, in every configuration of a pool
// (LAW-1 to LAW-3, LAW-5, LAW-6), up to a number of distinct recoveries for each. `perdure_explore`
// is the program around it.
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "papers/dudetm/options.hpp"
#include "testing/crashtest.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::conformance {

/// The options of the command line.
struct Budget {
  std::uint64_t distinct = 5000;  ///< recoveries of each engine on each workload
  /// The maximum for each; few take ten, unless the machine is busy.
  double seconds = 60;
  std::uint64_t seed = 1;    ///< the first seed; each round takes the next one
  std::uint64_t steps = 60;  ///< of a program
  /// Of these steps, the number of consecutive ones that are explored in a round.
  std::uint64_t window = 6;
  /// One round in each configuration under each model, whatever `distinct` says.
  bool every_configuration = true;
  std::vector<std::string> engines;  ///< empty: all
  std::string configuration;         ///< empty: all in turn
  std::string model;                 ///< empty: both in turn
  /// Stop at the first failure, and do not reduce its steps.
  bool first = false;
  void (*start)(std::uint64_t) = nullptr;  ///< a scheduler's, or null (crashtest::Plan)
  void (*stop)() = nullptr;
  void (*event)() noexcept = nullptr;
  std::function<void(const std::string&)> progress;
};

struct Row {
  std::string engine, workload;
  crash::Counts counts;
  std::uint64_t rounds = 0;
  std::set<std::uint64_t> pairs;  ///< the explored pairs of configuration and model
  std::string failure, replay;
};

template <class Workload>
crashtest::Plan plan_of(const Budget& budget, const Configuration& configuration,
                        crash::Model model, std::uint64_t seed, const engine::EngineInfo& entry) {
  crashtest::Plan plan;
  plan.engine = entry.name;
  plan.steps = budget.steps;
  plan.seed = seed;
  plan.durability = configuration.durability;
  plan.like_a_file = configuration.like_a_file;
  plan.explore.model = model;
  plan.shrink = !budget.first;
  plan.start = budget.start;
  plan.stop = budget.stop;
  plan.event = budget.event;
  plan.ring_bytes = small_ring(entry, configuration.like_a_file);
  if (entry.pages && seed % 3 == 0) {
    plan.engine_options =
        papers::DudetmOptions{.shadow_size = 16384,  // four pages: nearly every transaction evicts
                              .shadow_paging = base::mix(seed) % 2 == 0 ? ShadowPaging::hardware
                                                                        : ShadowPaging::software};
  }
  // As little as there may be.
  if (entry.limits_resident && seed % 3 == 0) plan.max_resident = 16 << 10;
  if (entry.family == "shadow" && seed % 3 == 1)
    plan.engine_options = ShadowOptions{.helper = ShadowOptions::Helper::on};
  if constexpr (requires { Workload::shape(plan); }) Workload::shape(plan);
  // In half of the rounds pages have checksums; in half of these only after the first opening.
  if (entry.keeps_checksums && seed % 2 == 0 && plan.first_limit == 0)
    plan.checksums_from = base::mix(seed + 7) % 2;
  // REWIND fences at each record, and with two layers dozens of times: only a part of these points
  // is explored, spread over the whole window.
  if (test::is_rewind(entry))
    plan.explore.every = entry.family.starts_with("rewind-2l") ? 1999 : 97;
  // One round in four begins with the creation of the pool, one ends with its close.
  const std::uint64_t last = budget.steps + 2, at = seed % 4 == 0   ? 0
                                                    : seed % 4 == 1 ? last
                                                                    : base::mix(seed) % last;
  plan.explore.from = at + budget.window > last ? last - std::min(last, budget.window) : at;
  plan.explore.to = plan.explore.from + budget.window;
  return plan;
}

template <class Workload>
void explore_instance(const engine::EngineInfo& entry, const Budget& budget,
                      std::vector<Row>& rows) {
  Row row;
  row.engine = entry.name;
  row.workload = Workload::name;
  if (!budget.engines.empty() &&
      std::find(budget.engines.begin(), budget.engines.end(), row.engine) == budget.engines.end())
    return;
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] {
    return budget.seconds -
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr std::uint64_t pairs = 2 * std::size(configurations);
  const std::string both = row.engine + " " + row.workload;
  const std::uint64_t name = base::hash_bytes(both.data(), both.size(), 0) % 1000;
  // REWIND's compositions and Blurred Persistence's systems differ in parts only: each is explored
  // for a shorter time.
  const std::uint64_t distinct = budget.distinct / (test::is_rewind(entry)    ? 10
                                                    : test::is_blurred(entry) ? 2
                                                                              : 1);
  for (std::uint64_t round = 0; row.failure.empty() && left() > 0; ++round) {
    if (row.counts.distinct >= distinct && (!budget.every_configuration || round >= pairs)) break;
    // Each engine and workload begins with another pair.
    const std::uint64_t pair = (name + round) % pairs;
    const Configuration& configuration = configurations[pair / 2];
    const bool adversarial = pair % 2 != 0;
    if ((!budget.configuration.empty() && budget.configuration != configuration.name) ||
        (!budget.model.empty() && (budget.model == "adversarial") != adversarial))
      continue;
    const std::uint64_t seed = name * 1'000'000 + budget.seed + round;
    crashtest::Plan plan = plan_of<Workload>(
        budget, configuration, adversarial ? crash::Model::adversarial : crash::Model::px86, seed,
        entry);
    plan.explore.seconds = left();
    if (budget.progress)
      budget.progress(row.engine + " " + row.workload + " " + configuration.name);
    crash::Seen seen;
    crashtest::Report report;
    // A round ends by itself after plan.explore.seconds; a round that hangs has the case's limit in
    // addition.
    if (const double limit = test::case_limit(); limit > 0)
      test::watch((both + " " + configuration.name + ", seed " + std::to_string(seed)).c_str(),
                  left() + limit);
    try {
      report = crashtest::explore<Workload, any_engine>(plan, seen);
    } catch (const std::exception& e) {
      report.failure = e.what();
    }
    test::unwatch();
    row.counts += report.counts;
    ++row.rounds;
    row.pairs.insert(pair);
    if (report.failure.empty()) continue;
    row.failure = row.engine + ", " + row.workload + ", " + configuration.name + ", " +
                  (adversarial ? "adversarial" : "px86") + ": " + report.failure;
    row.replay = "perdure_explore --engine " + row.engine + " --workload " + row.workload +
                 " --configuration " + configuration.name + " --model " +
                 (adversarial ? "adversarial" : "px86") + " --seed " + std::to_string(budget.seed) +
                 " --steps " + std::to_string(budget.steps) + " --window " +
                 std::to_string(budget.window);
  }
  rows.push_back(std::move(row));
}

/// All durable instances.
template <class Workload>
std::vector<Row> explore_all(const Budget& budget) {
  std::vector<Row> rows;
  for (const engine::EngineInfo& entry : test::chosen_engines()) {
    if (budget.first && !rows.empty() && !rows.back().failure.empty()) break;
    if (test::is_durable(entry) && !test::is_stood_for(entry) && test::runs_here(entry))
      explore_instance<Workload>(entry, budget, rows);
  }
  return rows;
}

// One translation unit for each: explore_*.cpp.
std::vector<Row> explore_swaps(const Budget& budget);
std::vector<Row> explore_hash_map(const Budget& budget);
std::vector<Row> explore_map(const Budget& budget);
std::vector<Row> explore_rb_tree(const Budget& budget);
std::vector<Row> explore_sequences(const Budget& budget);
std::vector<Row> explore_churn(const Budget& budget);
std::vector<Row> explore_raised(const Budget& budget);
std::vector<Row> explore_growth(const Budget& budget);
std::vector<Row> explore_tables(const Budget& budget);
std::vector<Row> explore_containers(const Budget& budget);

}  // namespace perdure::conformance
