// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_blurred_recovery: one measurement for Blurred Persistence's Figure 12
// (papers/figures/blurred.py). A child process makes an array of a million words
// (workloads/sps.hpp), closes and opens, swaps pairs until its log is full except for one
// transaction, and exits without closing. Measured are the recovery of the next opening, by its own
// clock, and the opening as a whole. The array is audited. Exit status: 0, or 1 when something
// failed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/harness/killed.hpp"
#include "bench/harness/scratch.hpp"
#include "bench/systems/perdure.hpp"

namespace bench {
namespace {

using Work = Sps<PerdureModel>;
using Host = PerdureHost<Work::Root, perdure::bppm_none>;
constexpr unsigned swaps = 4;  // per transaction: 8 words

struct Asked {
  Setting setting;
  PerdureChoice choice{"bppm/none"};
  std::uint64_t words = Work::count;  // of the array's words, the number that is swapped
};

void until_the_log_is_full(const Asked& asked) {
  auto* host = new Host(asked.setting, asked.choice);  // never closed
  Work::fill(*host, asked.setting);
  host->reopen();
  Rng rng(1, 0);
  const std::uint64_t capacity = host->stats().log_capacity;
  while (host->stats().log_used + 4096 < capacity) Work::swap(*host, swaps, asked.words, rng);
}

nlohmann::ordered_json measure(const Asked& asked) {
  using Clock = std::chrono::steady_clock;
  in_a_killed_process([&] { until_the_log_is_full(asked); });
  const auto start = Clock::now();
  Host host(asked.setting, asked.choice);
  const double opening = std::chrono::duration<double>(Clock::now() - start).count();
  const auto recovery = host.stats().recovery;
  if (recovery.transactions == 0) throw std::runtime_error("there was nothing to recover");
  for (const auto& problem : Work::audit(host, 0)) throw std::runtime_error(problem);
  return {{"seconds", recovery.seconds},           {"opening_seconds", opening},
          {"transactions", recovery.transactions}, {"records", recovery.records},
          {"log_bytes", recovery.bytes},           {"describe", host.describe()}};
}

int main_of(int argc, char** argv) {
  CLI::App app{"The recovery of a full log of Blurred Persistence."};
  Asked asked;
  Setting& setting = asked.setting;
  setting.directory = "/dev/shm";
  setting.log_size = 1 << 20;
  setting.rings = 1;
  bool json = false;
  app.add_option("--system", asked.choice.engine,
                 "bppm/none (its log is one lap) or bppm-xil/none");
  app.add_option("--dir", setting.directory,
                 "where the files go (a directory of its own is made there, and removed)");
  app.add_option("--delays", setting.delays,
                 "what a written line costs on the emulated medium (docs/media.md)");
  app.add_option("--log-size", setting.log_size, "bytes of the log (1 MiB)");
  app.add_option("--words", asked.words, "so many words of the array are swapped (1 M)")
      ->check(CLI::Range(std::uint64_t{1}, Work::count));
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    const Scratch scratch(setting.directory);
    setting.directory = scratch.path();
    const auto j = measure(asked);
    if (json)
      std::cout << j.dump() << '\n';
    else
      std::printf("%.6f s for %llu transactions, %.2f GB/s of log (%s)\n",
                  j["seconds"].get<double>(),
                  static_cast<unsigned long long>(j["transactions"].get<std::uint64_t>()),
                  1e-9 * static_cast<double>(j["log_bytes"].get<std::uint64_t>()) /
                      j["seconds"].get<double>(),
                  j["describe"].get<std::string>().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv); }
