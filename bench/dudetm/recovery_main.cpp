// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_redo_recovery: one measurement of the recovery of a redo log (shadow and dudetm
// share the function), for D-Recovery (papers/figures/dudetm_log.py). A child process makes an
// array, closes and opens, stores runs of words at places drawn uniformly until its log holds the
// given number of bytes, and exits without closing. Measured is the recovery of the next opening,
// by its own clock. The array is compared with what was stored. Exit status: 0, or 1 when something
// failed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/harness/killed.hpp"
#include "bench/harness/rng.hpp"
#include "bench/harness/scratch.hpp"
#include "papers/dudetm/options.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/perdure.hpp"

namespace bench {
namespace {

using perdure::p;

struct Root {
  static constexpr const char* layout_id = "bench::RedoRecoveryRoot/1";
  perdure::ptr<p<std::uint64_t>> words;
};
using Pool = perdure::Pool<Root, perdure::engines<perdure::shadow_none>>;

struct Asked {
  std::string path, delays = "none";
  // Words per run, runs per transaction.
  std::uint64_t log_bytes = 64 << 20, data_bytes = 64 << 20, run = 1, each = 8;
  unsigned threads = 0;
  bool held = false;
  [[nodiscard]] std::uint64_t words() const { return data_bytes / 8; }
};

perdure::Options options_of(const Asked& asked) {
  perdure::Options o;
  o.medium = "emulated";
  o.medium_options.delays = perdure::medium::Delays::named(asked.delays).value();
  o.isolation = perdure::Isolation::caller;
  o.durability = asked.held ? perdure::durable : perdure::async;
  o.creation.threads = 1;
  // The log stays below 1/2, where a checkpoint would truncate it.
  o.creation.log_size = (asked.log_bytes + (8 << 20)) / 2 * 5 / 4096 * 4096;
  o.engine_options = perdure::papers::DudetmOptions{.volatile_log = 1 << 30};
  o.recovery.threads = asked.threads;
  return o;
}

// Calls f(first word of a run, its first value) for the transactions in their order.
template <class F>
void each_run(const Asked& asked, Rng& rng, std::uint64_t number, F&& f) {
  for (std::uint64_t i = 0; i < asked.each; ++i)
    f(rng.below(asked.words() / asked.run) * asked.run, (number * asked.each + i) << 16 | 1);
}

void until_the_log_holds(const Asked& asked) {
  // The second pool is never closed.
  auto* pool = new std::optional<Pool>(Pool::open(asked.path, options_of(asked)));
  (*pool)->update([&](auto& tx, Root& root) {
    tx(root.words) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(asked.data_bytes));
  });
  (*pool)->close();
  pool->reset();
  pool->emplace(Pool::open(asked.path, options_of(asked)));
  Rng rng(1, 0);
  std::uint64_t number = 0;
  std::vector<std::uint64_t> values(asked.run);
  while (number % 64 != 0 || (*pool)->stats().log_used < asked.log_bytes) {
    ++number;
    Rng next = rng;
    (*pool)->update([&](auto& tx, Root& root) {
      next = rng;  // the transaction may run more than once
      p<std::uint64_t>* const words = tx.read(root.words);
      each_run(asked, next, number, [&](std::uint64_t at, std::uint64_t value) {
        for (std::uint64_t k = 0; k < asked.run; ++k) values[k] = value + k;
        tx.write_bytes(words + at, values.data(), asked.run * 8);
      });
    });
    rng = next;
  }
  (*pool)->view(perdure::durable, [](auto&, const Root&) { return 0; });
}

void compare(Pool& pool, const Asked& asked, std::uint64_t transactions) {
  std::vector<std::uint64_t> expected(asked.words(), 0);
  Rng rng(1, 0);
  for (std::uint64_t number = 1; number <= transactions; ++number)
    each_run(asked, rng, number, [&](std::uint64_t at, std::uint64_t value) {
      for (std::uint64_t k = 0; k < asked.run; ++k) expected[at + k] = value + k;
    });
  pool.view([&](auto& tx, const Root& root) {
    const p<std::uint64_t>* const words = tx.read(root.words);
    for (std::uint64_t i = 0; i < asked.words(); ++i)
      if (expected[i] != 0 && tx.read(words[i]) != expected[i])
        throw std::runtime_error("word " + std::to_string(i) + " is not what was stored last");
    return 0;
  });
}

nlohmann::ordered_json measure(const Asked& asked) {
  in_a_killed_process([&] { until_the_log_holds(asked); });
  Pool pool = Pool::open(asked.path, options_of(asked));
  const auto stats = pool.stats();
  const auto& recovery = stats.recovery;
  if (recovery.bytes < asked.log_bytes)
    throw std::runtime_error("found " + std::to_string(recovery.bytes) +
                             " bytes of log to recover, expected " +
                             std::to_string(asked.log_bytes));
  compare(pool, asked, recovery.transactions);
  return {{"seconds", recovery.seconds},
          {"gb_s", 1e-9 * static_cast<double>(recovery.bytes) / recovery.seconds},
          {"transactions", recovery.transactions},
          {"records", recovery.records},
          {"log_bytes", recovery.bytes},
          {"flushed_lines", stats.medium.flushed_lines}};
}

int main_of(int argc, char** argv) {
  CLI::App app{"The recovery of a redo log of so many bytes."};
  Asked asked;
  std::string directory = "/dev/shm";
  bool json = false;
  app.add_option("--dir", directory,
                 "where the pool goes (a directory of its own is made there, and removed)");
  app.add_option("--delays", asked.delays,
                 "what a written line costs on the emulated medium (docs/media.md)");
  app.add_option("--log-bytes", asked.log_bytes, "bytes of log to recover (64 MiB)");
  app.add_option("--home-bytes", asked.data_bytes, "bytes that the words lie in (64 MiB)");
  app.add_option("--run", asked.run, "words that are stored together (1)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--each", asked.each, "runs of a transaction (8)")->check(CLI::Range(1, 4096));
  app.add_option("--threads", asked.threads, "that recover (0: as many as the library finds)")
      ->check(CLI::Range(0, 8));
  app.add_flag("--held", asked.held, "a record a transaction (strict order), not one a group");
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    const Scratch scratch(directory);
    asked.path = scratch.path() + "/pool.perdure";
    const auto j = measure(asked);
    if (json)
      std::cout << j.dump() << '\n';
    else
      std::printf("%.6f s for %llu bytes of log, %.2f GB/s\n", j["seconds"].get<double>(),
                  static_cast<unsigned long long>(j["log_bytes"].get<std::uint64_t>()),
                  j["gb_s"].get<double>());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv); }
