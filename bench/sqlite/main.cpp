// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_sqlite: one measurement of SQLite, on a plain file or on a pool: one-row commits,
// or TPC-C's five transactions; one connection. Afterwards the database is checked, closed, opened
// and checked again. Exit status: 0, 1 when something failed or was found broken, 2 for wrong
// arguments.
#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness/scratch.hpp"
#include "bench/sqlite/databases.hpp"
#include "bench/sqlite/tpcc_check.hpp"
#include "bench/sqlite/tpcc_transactions.hpp"

namespace bench::sqlite {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Asked {
  Setup setup;
  std::string workload = "rows";
  std::uint64_t commits = 2000, warm = 200;
  tpcc::Scale scale;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Calls f(n) for each n; returns the costs.
template <class F>
Json measured(Subject& subject, const Asked& asked, F&& f) {
  for (std::uint64_t n = 0; n < asked.warm; ++n) f(n);
  const Cost before = subject.cost();
  const auto start = Clock::now();
  for (std::uint64_t n = 0; n < asked.commits; ++n) f(asked.warm + n);
  const double seconds = since(start);
  const Cost cost = subject.cost() - before;
  const auto each = static_cast<double>(asked.commits);
  return {{"rate", each / seconds},
          {"us", seconds * 1e6 / each},
          {"log_bytes", static_cast<double>(cost.log_bytes) / each},
          {"device_bytes", static_cast<double>(cost.device_bytes) / each},
          {"lines", static_cast<double>(cost.lines) / each},
          {"fences", static_cast<double>(cost.fences) / each}};
}

/// Inserts rows of a number and a text of 100 bytes, each in a commit of its own.
Json rows(Subject& subject, const Asked& asked) {
  Connection& db = subject.db();
  db.run("create table row (id integer primary key, value text)");
  const std::string value(100, 'x');
  Json j;
  {
    Statement insert(db, "insert into row values (?, ?)");
    j = measured(subject, asked, [&](std::uint64_t n) { insert(n, value); });
  }
  for (const bool again : {false, true}) {
    if (again) subject.reopen();
    if (subject.db().run("select count(*) from row") != std::to_string(asked.warm + asked.commits))
      throw std::runtime_error("rows are missing");
    if (subject.db().run("pragma integrity_check") != "ok")
      throw std::runtime_error("integrity_check found damage");
  }
  return j;
}

Json transactions(Subject& subject, const Asked& asked) {
  const auto start = Clock::now();
  tpcc::Loader(subject.db(), asked.scale).load();
  const double loading = since(start);
  Json j;
  std::array<std::uint64_t, tpcc::kind_names.size()> count{};
  std::array<double, tpcc::kind_names.size()> took{};
  std::uint64_t rolled_back = 0;
  {
    tpcc::Terminal terminal(subject.db(), asked.scale, 1);
    j = measured(subject, asked, [&](std::uint64_t) {
      const auto began = Clock::now();
      const auto kind = static_cast<std::size_t>(terminal.next());
      took[kind] += since(began);
      ++count[kind];
    });
    rolled_back = terminal.rolled_back();
  }
  j["load_seconds"] = loading;
  j["rolled_back"] = rolled_back;
  for (std::size_t k = 0; k < count.size(); ++k)
    j["kinds"][tpcc::kind_names[k]] = {
        {"count", count[k]},
        {"us", count[k] == 0 ? 0 : took[k] * 1e6 / static_cast<double>(count[k])}};
  for (const bool again : {false, true}) {
    if (again) subject.reopen();
    for (const auto& problem : tpcc::problems(subject.db())) throw std::runtime_error(problem);
  }
  return j;
}

int main_of(int argc, char** argv) {
  CLI::App app{"One measurement of SQLite, on a plain file or on a pool."};
  Asked asked;
  Setup& s = asked.setup;
  bool json = false;
  app.add_option("--database", s.kind,
                 "wal, journal (plain files), b, a (pools), b-non-atomic, b-undo-log (the paper's "
                 "baselines, emulated, which no crash may meet)")
      ->check(CLI::IsMember({"wal", "journal", "b", "a", "b-non-atomic", "b-undo-log"}))
      ->required();
  app.add_flag("--no-journal", s.no_journal, "journal_mode=off: SQLite keeps no journal");
  app.add_option("--workload", asked.workload, "rows, tpcc")
      ->check(CLI::IsMember({"rows", "tpcc"}));
  app.add_option("--engine", s.engine, "b's engine (shadow)");
  app.add_option("--medium", s.medium, "a pool's: file, emulated")
      ->check(CLI::IsMember({"file", "emulated"}));
  app.add_option("--tw", s.tw_ns,
                 "emulated: ns that a line takes to leave the write buffer; 0: no delay")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--dir", s.directory,
                 "where the file goes (a directory of its own is made there, and removed)");
  app.add_option("--log-size", s.log_size, "a pool's (64 MiB)");
  app.add_option("--commits", asked.commits, "measured (2000)")->check(CLI::PositiveNumber);
  app.add_option("--warm", asked.warm, "before (200)");
  app.add_option("--warehouses", asked.scale.warehouses, "tpcc (1)")->check(CLI::Range(1U, 100U));
  app.add_option("--divisor", asked.scale.divisor,
                 "tpcc: of a warehouse's items, customers and orders (1)")
      ->check(CLI::Range(1U, tpcc::largest_divisor));
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    const Scratch scratch(s.directory);
    s.directory = scratch.path();
    Subject subject(s);
    const Json j = asked.workload == "rows" ? rows(subject, asked) : transactions(subject, asked);
    if (json)
      std::cout << j.dump() << '\n';
    else
      std::printf(
          "%.0f commits/s (%.1f us each); of one: %.0f bytes of log, %.0f bytes to the device, "
          "%.1f lines, %.2f fences\n",
          j["rate"].get<double>(), j["us"].get<double>(), j["log_bytes"].get<double>(),
          j["device_bytes"].get<double>(), j["lines"].get<double>(), j["fences"].get<double>());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s: %s\n", argv[0], s.kind.c_str(), e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bench::sqlite

int main(int argc, char** argv) { return bench::sqlite::main_of(argc, argv); }
