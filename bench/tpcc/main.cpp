// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_tpcc: TPC-C's new order on one system in one layout. Prints transactions per
// minute, the counters, and what the audit found; the exit status is 1 if a consistency condition
// is broken. Names:
//   --system nvm                         persistent, not recoverable: no log
//   --system rewind-1l-nfp-batch/none    an instance of the registry; with /none the benchmark's
//                                        own locks isolate, otherwise the pool does
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/harness/scratch.hpp"
#include "bench/tpcc/run.hpp"

namespace {

using bench::tpcc::Report;
using bench::tpcc::Setup;

Report run(const Setup& setup, bool kill) {
  if (setup.system == "nvm") {
    if (kill)
      throw std::invalid_argument(
          "--check-recovery with --system nvm: found a system that does not recover, expected an "
          "instance of the registry");
    return run_nvm(setup);
  }
  return setup.layout == "naive" ? run_naive(setup, kill) : run_optimised(setup, kill);
}

void print(const Setup& setup, const Report& report, bool kill, bool json) {
  const double transactions =
      report.transactions != 0 ? static_cast<double>(report.transactions) : 1.0;
  if (json) {
    nlohmann::json document = {{"system", setup.system},
                               {"layout", setup.layout},
                               {"log", setup.distributed ? "distributed" : "shared"},
                               {"threads", setup.threads},
                               {"delays", setup.delays},
                               {"describe", report.describe},
                               {"tpm", report.tpm},
                               {"seconds", report.seconds},
                               {"cpu_seconds", report.cpu_seconds},
                               {"aborted", report.aborted},
                               {"transactions", report.transactions},
                               {"problems", report.problems}};
    for (const auto& [name, value] : report.counters)
      document["per_transaction"][name] = value / transactions;
    std::cout << document.dump(1) << "\n";
    return;
  }
  std::printf("%s, %s layout, %s log, %u threads, delays %s; %s\n", setup.system.c_str(),
              setup.layout.c_str(), setup.distributed ? "distributed" : "shared", setup.threads,
              setup.delays.c_str(), report.describe.c_str());
  if (kill) {
    std::printf("killed after %.1f s and recovered\n", setup.seconds);
  } else {
    std::printf(
        "%.0f transactions a minute; %llu in all, %llu of them aborted; %.2f s, %.2f s of "
        "processors\n",
        report.tpm, static_cast<unsigned long long>(report.transactions),
        static_cast<unsigned long long>(report.aborted), report.seconds, report.cpu_seconds);
    for (const auto& [name, value] : report.counters)
      std::printf("  %-18s %14.0f  %10.2f a transaction\n", name.c_str(), value,
                  value / transactions);
  }
  for (const auto& problem : report.problems) std::printf("BROKEN: %s\n", problem.c_str());
  if (report.problems.empty()) std::printf("consistent\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"TPC-C's new order: one warehouse, ten terminals, B+-trees."};
  Setup setup;
  std::string log = "shared";
  bool json = false, kill = false;
  app.add_option("--system", setup.system, "nvm, or an instance of Perdure's registry")
      ->capture_default_str();
  app.add_option("--layout", setup.layout,
                 "one tree a table, or for the order tables one a district")
      ->check(CLI::IsMember({"naive", "optimised"}))
      ->capture_default_str();
  app.add_option("--log", log, "one for all threads, or one for each")
      ->check(CLI::IsMember({"shared", "distributed"}))
      ->capture_default_str();
  app.add_option("--threads", setup.threads, "terminals")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--seconds", setup.seconds, "how long is measured, or until the kill")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--warmup", setup.warmup, "how long they run before")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  app.add_option("--seed", setup.seed, "of the random numbers")->capture_default_str();
  app.add_option("--delays", setup.delays,
                 "a paper's slow memory: none, rewind, blurred, dudetm, dudetm-3500, softwrap")
      ->capture_default_str();
  app.add_option("--dir", setup.directory, "where the pool is put, on tmpfs")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--log-size", setup.log_size, "bytes of all logs together")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_flag(
      "--check-recovery", kill,
      "kill a process in the middle of its transactions instead, recover its pool and audit it");
  app.add_flag("--json", json, "print a JSON document");
  CLI11_PARSE(app, argc, argv);
  setup.distributed = log == "distributed";
  try {
    const bench::Scratch scratch(setup.directory);
    setup.directory = scratch.path();
    const Report report = run(setup, kill);
    print(setup, report, kill, json);
    return report.problems.empty() ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "perdure_bench_tpcc: " << e.what() << "\n";
    return 2;
  }
}
