// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_explore: recovers every registered engine from the images that power cuts leave of it,
// and prints how many recoveries were judged.
// Exit status: 0 when nothing was found; 1 when something was found, or fewer than --at-least were
// judged; 2 for wrong arguments.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "testing/call_sites.hpp"
#include "tests/conformance/explore.hpp"
#include "tests/crash/scheduler.hpp"

namespace perdure::conformance {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
// The sanitizers check what one recovery does; the number of recoveries matters in the plain build.
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

using Explore = std::vector<Row> (*)(const Budget&);
const std::vector<std::pair<std::string, Explore>> workloads = {
    {"swaps", explore_swaps},          {"hash_map", explore_hash_map},   {"map", explore_map},
    {"rb_tree", explore_rb_tree},      {"sequences", explore_sequences}, {"churn", explore_churn},
    {"raised", explore_raised},        {"growth", explore_growth},       {"tables", explore_tables},
    {"containers", explore_containers}};

std::string grouped(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

double rate(const crash::Counts& c) {
  return c.seconds > 0 ? static_cast<double>(c.recoveries) / c.seconds : 0;
}

nlohmann::ordered_json to_json(const Row& row) {
  return {{"engine", row.engine},
          {"workload", row.workload},
          {"ways_and_models", row.pairs.size()},
          {"rounds", row.rounds},
          {"points", row.counts.points},
          {"images", row.counts.images},
          {"recoveries", row.counts.recoveries},
          {"distinct", row.counts.distinct},
          {"deepest", row.counts.deepest},
          {"seconds", row.counts.seconds},
          {"failure", row.failure},
          {"replay", row.replay}};
}

void print_row(const std::string& engine, const std::string& workload, const crash::Counts& c) {
  fmt::print("{:20} {:10} {:>12} {:>12} {:>12} {:>9} {:>9.0f}\n", engine, workload,
             grouped(c.images), grouped(c.recoveries), grouped(c.distinct), c.deepest, rate(c));
}

// Adds up the rows of the same engine and workload.
void add(std::vector<Row>& all, const std::vector<Row>& more) {
  for (const Row& row : more) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Row& r) {
      return r.engine == row.engine && r.workload == row.workload;
    });
    if (same == all.end()) {
      all.push_back(row);
      continue;
    }
    same->counts += row.counts;
    same->rounds += row.rounds;
    same->pairs.insert(row.pairs.begin(), row.pairs.end());
    if (same->failure.empty()) same->failure = row.failure, same->replay = row.replay;
  }
}

int run(int argc, char** argv) {
  Budget budget;
  std::vector<std::string> chosen;
  double minutes = 0;
  std::uint64_t at_least = 0;
  bool json = false, sites = false;
  std::vector<std::string> omitted;
  CLI::App app(
      "recovers every engine from what power cuts leave, and judges each recovery: a state in "
      "which the program was, nothing "
      "acknowledged lost, no block leaked, the same after a power cut in recovery",
      "perdure_explore");
  app.add_option("--workload", chosen,
                 "only these: swaps, hash_map, map, rb_tree, sequences, churn, raised, growth, "
                 "tables, containers")
      ->delimiter(',');
  app.add_option("--engine", budget.engines, "only these instances, such as shadow,undo/stm")
      ->delimiter(',');
  app.add_option("--configuration", budget.configuration, "only pools made so")
      ->check(CLI::IsMember({"durable", "group", "async", "file", "file-async"}));
  app.add_option("--model", budget.model, "only px86 or adversarial")
      ->check(CLI::IsMember({"px86", "adversarial"}));
  app.add_option("--distinct", budget.distinct,
                 "distinct recoveries of each engine on each workload")
      ->capture_default_str();
  app.add_option("--seconds", budget.seconds, "at most, of each")->capture_default_str();
  app.add_option("--steps", budget.steps, "transactions of a program")->capture_default_str();
  app.add_option("--window", budget.window, "of these, how many in a row are looked at in a round")
      ->capture_default_str();
  app.add_option("--seed", budget.seed, "of the first round")->capture_default_str();
  app.add_option("--minutes", minutes, "go on with new seeds for so long");
  app.add_option("--at-least", at_least, "fail with fewer distinct recoveries in all");
  app.add_flag("--first", budget.first, "stop at the first failure, as it is");
  app.add_flag("--sites", sites,
               "print from where the library called flush and fence (addresses in this program's "
               "file), as JSON");
  app.add_option("--omit", omitted, "leave out calls, as FLUSH_OR_FENCE:ADDRESS: the mutation gate")
      ->delimiter(',');
  app.add_flag("--json", json, "print one JSON document");
  app.footer(
      "A failure is printed with the arguments that show it again. What the columns mean: "
      "docs/exploring.md.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  for (const std::string& name : chosen)
    if (std::none_of(workloads.begin(), workloads.end(),
                     [&](const auto& w) { return w.first == name; })) {
      fmt::print(
          stderr,
          "perdure_explore: found --workload {}, expected one of the names that --help lists\n",
          name);
      return 2;
    }
  if (sites) medium::CallSites::of_process().record();
  for (const std::string& site : omitted) {
    const std::size_t colon = site.find(':');
    char* end = nullptr;
    const std::uint64_t address =
        colon == std::string::npos ? 0 : std::strtoull(site.c_str() + colon + 1, &end, 16);
    if (address == 0 || *end != '\0') {
      fmt::print(stderr, "perdure_explore: found --omit {}, expected such as fence:0x1a2b\n", site);
      return 2;
    }
    medium::CallSites::of_process().omit(site.substr(0, colon), address);
  }
  if (sanitized) {
    budget.distinct /= 20;
    budget.window = std::min<std::uint64_t>(budget.window, 2);
    budget.steps = std::min<std::uint64_t>(budget.steps, 30);
    budget.every_configuration = false;
    at_least = 0;
  }
#if !defined(__SANITIZE_THREAD__)
  budget.start = test::Scheduler::start;
  budget.stop = test::Scheduler::stop;
  budget.event = test::Scheduler::point;
#endif
  const std::uint64_t first_seed = budget.seed;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  crash::Counts sum;
  std::vector<Row> rows;
  if (::isatty(STDERR_FILENO) != 0)
    budget.progress = [&](const std::string& what) {
      fmt::print(stderr, "\r{:6.0f} s  {:>12} distinct recoveries  seed {:<8} {:40}", elapsed(),
                 grouped(sum.distinct), budget.seed, what);
    };
  do {
    for (const auto& [name, explore] : workloads) {
      if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), name) == chosen.end())
        continue;
      const std::vector<Row> more = explore(budget);
      add(rows, more);
      for (const Row& row : more) sum += row.counts;
      if (minutes > 0 && elapsed() > minutes * 60) break;
      if (budget.first &&
          std::any_of(more.begin(), more.end(), [](const Row& r) { return !r.failure.empty(); }))
        break;
    }
    budget.seed += 1000;
  } while (minutes > 0 && elapsed() < minutes * 60 &&
           std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.failure.empty(); }));
  if (budget.progress) fmt::print(stderr, "\n");
  bool failed = false;
  if (sites) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [site, count] : medium::CallSites::of_process().sites())
      list.push_back(
          {{"call", site.first}, {"address", fmt::format("{:#x}", site.second)}, {"times", count}});
    fmt::print("{}\n", list.dump(1));
    return 0;
  }
  if (json) {
    nlohmann::ordered_json document{{"rows", nlohmann::ordered_json::array()},
                                    {"distinct", sum.distinct},
                                    {"recoveries", sum.recoveries},
                                    {"recoveries_per_second", rate(sum)},
                                    {"deepest", sum.deepest},
                                    {"seconds", elapsed()},
                                    {"seed", first_seed}};
    for (const Row& row : rows) document["rows"].push_back(to_json(row));
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print("{:20} {:10} {:>12} {:>12} {:>12} {:>9} {:>9}\n", "engine", "workload", "images",
               "recoveries", "distinct", "deepest", "per s");
    for (const Row& row : rows) print_row(row.engine, row.workload, row.counts);
    print_row("all", "", sum);
    fmt::print("seed {}{}; {:.0f} s\n", first_seed,
               minutes > 0 ? fmt::format(", then others up to {}", budget.seed - 1000) : "",
               elapsed());
  }
  const auto in_vain = [&](const std::string& what) {
    fmt::print(stderr, "perdure_explore: {}\n", what);
    failed = true;
  };
  if (rows.empty())
    in_vain("nothing was explored: found no such --engine among those that are durable");
  for (const Row& row : rows) {
    if (row.counts.recoveries == 0 && row.failure.empty())
      in_vain(row.engine + ", " + row.workload + ": nothing was judged");
    if (budget.every_configuration && budget.configuration.empty() && budget.model.empty() &&
        row.failure.empty() && row.pairs.size() != 2 * std::size(configurations) && minutes <= 0)
      in_vain(row.engine + ", " + row.workload + ": " + std::to_string(row.pairs.size()) + " of " +
              std::to_string(2 * std::size(configurations)) +
              " configurations and models were explored; give it more --seconds");
    if (row.failure.empty()) continue;
    failed = true;
    fmt::print(stderr, "FOUND {}\n  again: {}\n", row.failure, row.replay);
  }
  if (sum.distinct < at_least) {
    fmt::print(stderr, "{} distinct recoveries, expected {} or more\n", grouped(sum.distinct),
               grouped(at_least));
    failed = true;
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace perdure::conformance

int main(int argc, char** argv) { return perdure::conformance::run(argc, argv); }
