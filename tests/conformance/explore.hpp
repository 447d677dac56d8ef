// SPDX-License-Identifier: BSD-3-Clause
//
// Explores a workload on every durable engine of the registry, in every way a pool may be made (law L1 to L3, L5, L6), up to a number of
// distinct recoveries each. `perdure_explore` is the program around it.
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perdure/crash/crashtest.hpp"

namespace perdure::conformance {

/// What the command line asked for.
struct Budget {
  std::uint64_t distinct = 5000;  ///< recoveries of each engine on each workload
  double seconds = 10;            ///< at most, of each
  std::uint64_t seed = 1;         ///< the first; each round takes the next
  std::uint64_t steps = 40;
  std::vector<std::string> engines;  ///< empty: all
  std::string way;                   ///< empty: all in turn
  std::string model;                 ///< empty: both in turn
  bool first = false;                ///< stop at the first failure, and do not thin its steps out
  std::function<void(const std::string&)> progress;
};

/// How a pool is made and used: what decides the order of commits and recovery's rule.
struct Way {
  const char* name;
  Durability durability;
  bool like_a_file;
};
inline constexpr Way ways[] = {
    {"durable", durable, false}, {"group", group, false}, {"async", async, false}, {"file", durable, true}, {"file-async", async, true}};

struct Row {
  std::string engine, workload;
  crash::Counts counts;
  std::uint64_t rounds = 0;
  std::string failure, replay;
};

template <class Workload>
crashtest::Plan plan_of(const Way& way, crash::Model model, std::uint64_t seed, std::uint64_t steps, std::string_view engine) {
  crashtest::Plan plan;
  plan.steps = steps;
  plan.seed = seed;
  plan.durability = way.durability;
  plan.like_a_file = way.like_a_file;
  plan.explore.model = model;
  // undo logs a line at a time, and a file's blocks are 4 KiB: a transaction of forty lines needs forty of them twice
  plan.ring_bytes = !way.like_a_file ? 16384 : engine.starts_with("undo") ? 1 << 20 : 65536;
  if constexpr (requires { Workload::shape(plan); }) Workload::shape(plan);
  return plan;
}

template <class Workload, class Instance>
void explore_instance(const Budget& budget, std::vector<Row>& rows) {
  Row row;
  row.engine = Instance::name;
  row.workload = Workload::name;
  if (!budget.engines.empty() && std::find(budget.engines.begin(), budget.engines.end(), row.engine) == budget.engines.end()) return;
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] { return budget.seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  for (std::uint64_t round = 0; row.failure.empty() && row.counts.distinct < budget.distinct && left() > 0; ++round) {
    const Way& way = ways[round % std::size(ways)];
    const bool adversarial = round / std::size(ways) % 2 != 0;
    if ((!budget.way.empty() && budget.way != way.name) || (!budget.model.empty() && (budget.model == "adversarial") != adversarial)) {
      if (round > 2 * std::size(ways) && row.rounds == 0) break;  // no such way
      continue;
    }
    const std::uint64_t seed = base::hash_bytes(row.engine.data(), row.engine.size(), 0) % 1000 * 1'000'000 + budget.seed + round;
    crashtest::Plan plan =
        plan_of<Workload>(way, adversarial ? crash::Model::adversarial : crash::Model::px86, seed, budget.steps, Instance::name);
    plan.explore.seconds = left();
    plan.shrink = !budget.first;
    if (budget.progress) budget.progress(row.engine + " " + row.workload + " " + way.name);
    crash::Seen seen;
    crashtest::Report report;
    try {
      report = crashtest::explore<Workload, Instance>(plan, seen);
    } catch (const std::exception& e) {
      report.failure = e.what();
    }
    row.counts += report.counts;
    ++row.rounds;
    if (report.failure.empty()) continue;
    row.failure =
        row.engine + ", " + row.workload + ", " + way.name + ", " + (adversarial ? "adversarial" : "px86") + ": " + report.failure;
    row.replay = "perdure_explore --engine " + row.engine + " --workload " + row.workload + " --way " + way.name + " --model " +
                 (adversarial ? "adversarial" : "px86") + " --seed " + std::to_string(budget.seed) + " --steps " +
                 std::to_string(budget.steps) + " --distinct " + std::to_string(budget.distinct);
  }
  rows.push_back(std::move(row));
}

/// All durable instances.
template <class Workload, class... Instances>
std::vector<Row> explore_all(engines<Instances...>, const Budget& budget) {
  std::vector<Row> rows;
  const auto one = [&]<class Instance>(std::type_identity<Instance>) {
    if (budget.first && !rows.empty() && !rows.back().failure.empty()) return;
    if constexpr (std::string_view(Instance::type::name) != "volatile") explore_instance<Workload, Instance>(budget, rows);
  };
  (one(std::type_identity<Instances>{}), ...);
  return rows;
}

// One translation unit each: explore_*.cpp.
std::vector<Row> explore_swaps(const Budget& budget);
std::vector<Row> explore_hash_map(const Budget& budget);
std::vector<Row> explore_map(const Budget& budget);
std::vector<Row> explore_rb_tree(const Budget& budget);
std::vector<Row> explore_sequences(const Budget& budget);
std::vector<Row> explore_churn(const Budget& budget);
std::vector<Row> explore_growth(const Budget& budget);

}  // namespace perdure::conformance
