// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_rewind_log: one point of one of the figures 3 to 6 of the REWIND paper (section
// 5.1); bench/figures/rewind_log.py runs many in turn.
//   intensity   one transaction of many stores with computation between them, and the same without
//               a log
//   skip        logging and commit of one transaction among the records of others, and its stores
//               without a log
//   rollback    the same, rolled back
//   recovery    the same, left unfinished by a crash among committed transactions that were not
//               cleared
//   mixed       interleaved transactions, of which a part is left unfinished; the total, and the
//               recovery
//   threads     short transactions of several threads, with one log or one log per thread (section
//               4.7)
//   checkpoint  many short transactions with checkpoints, and without
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/rewind/rig.hpp"

namespace bench::rewind {
namespace {

using Json = nlohmann::ordered_json;

struct Point {
  RigOptions rig;
  std::uint64_t updates = 10, skip = 100, records = 1'000'000, every = 0;
  std::uint32_t threads = 2;
  bool distributed = false;
  double percent = 100;
};

Json intensity(const Point& p) {
  Rig rig(p.rig);
  for (std::uint64_t i = 0; i < 1000; ++i) rig.plain(i, 1);
  auto start = Clock::now();
  for (std::uint64_t i = 0; i < p.updates; ++i) rig.plain(i * 97, i);
  const double store_ns = seconds_since(start) * 1e9 / static_cast<double>(p.updates),
               between = store_ns * (100 - p.percent) / p.percent;
  start = Clock::now();
  for (std::uint64_t i = 0; i < p.updates; ++i) rig.plain(i * 97, i), compute(between);
  const double plain = seconds_since(start);
  ManagedTransaction tx;
  start = Clock::now();
  for (std::uint64_t i = 0; i < p.updates; ++i) rig.update(tx, i * 97, i + 1), compute(between);
  rig.commit(tx);
  const double logged = seconds_since(start);
  return {{"plain_seconds", plain},
          {"seconds", logged},
          {"ratio", logged / plain},
          {"store_ns", store_ns}};
}

/// One transaction's stores, interleaved with those of ten others.
double interleaved(Rig& rig, const Point& p, ManagedTransaction& target,
                   std::vector<ManagedTransaction>& others) {
  double seconds = 0;
  std::uint64_t word = 0, next = 0;
  for (std::uint64_t i = 0; i < p.updates; ++i) {
    const auto start = Clock::now();
    rig.update(target, i, i + 1);
    seconds += seconds_since(start);
    for (std::uint64_t s = 0; s < p.skip; ++s)
      rig.update(others[next++ % others.size()], 1000 + word++ % 10'000, s);
  }
  return seconds;
}

Json skip(const Point& p) {
  Rig rig(p.rig);
  std::vector<ManagedTransaction> others(10);
  ManagedTransaction target;
  double seconds = interleaved(rig, p, target, others);
  auto start = Clock::now();
  rig.commit(target);
  const double commit = seconds_since(start);
  start = Clock::now();
  for (std::uint64_t i = 0; i < p.updates; ++i) rig.plain(i, i);
  const double plain = seconds_since(start);
  return {{"plain_seconds", plain},
          {"log_seconds", seconds},
          {"commit_seconds", commit},
          {"ratio", (seconds + commit) / plain}};
}

Json rollback(const Point& p) {
  Rig rig(p.rig);
  std::vector<ManagedTransaction> others(10);
  ManagedTransaction target;
  interleaved(rig, p, target, others);
  const auto start = Clock::now();
  rig.rollback(target);
  return {{"seconds", seconds_since(start)}};
}

Json recovery(const Point& p) {
  Rig rig(p.rig);
  std::vector<ManagedTransaction> others(10);
  ManagedTransaction target;
  interleaved(rig, p, target, others);
  for (auto& other : others) rig.commit(other, false);
  perdure::engine::Recovery report;
  const double seconds = rig.crash_and_recover(report);
  if (report.rolled_back != 1)
    throw std::runtime_error("found " + std::to_string(report.rolled_back) +
                             " transactions rolled back, expected 1");
  return {{"seconds", seconds}, {"records", report.records}};
}

Json mixed(const Point& p) {
  Rig rig(p.rig);
  std::vector<ManagedTransaction> all(p.skip +
                                      1);  // each has `skip` records of others between its own
  const auto left =
      static_cast<std::uint64_t>(static_cast<double>(all.size()) * p.percent / 100 + 0.5);
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < p.updates; ++i)
    for (std::size_t t = 0; t < all.size(); ++t) rig.update(all[t], t * p.updates + i, i + 1);
  // Clearing is not measured.
  for (std::size_t t = left; t < all.size(); ++t) rig.commit(all[t], false);
  double seconds = seconds_since(start);
  perdure::engine::Recovery report;
  if (left != 0) seconds += rig.crash_and_recover(report);
  if (report.rolled_back != left)
    throw std::runtime_error("found " + std::to_string(report.rolled_back) +
                             " transactions rolled back, expected " + std::to_string(left));
  return {{"seconds", seconds},
          {"transactions", all.size()},
          {"us_a_transaction", seconds * 1e6 / static_cast<double>(all.size())}};
}

Json checkpoint(const Point& p) {
  Rig rig(p.rig);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> logged{0}, made{0};
  std::thread beside;
  if (p.every != 0)
    beside = std::thread([&] {
      for (std::uint64_t next = p.every; !over;) {
        if (logged.load(std::memory_order_relaxed) < next) {
          std::this_thread::yield();
          continue;
        }
        rig.checkpoint();
        ++made;
        next += p.every;
      }
    });
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < p.records / p.updates; ++i) {
    ManagedTransaction tx;
    for (std::uint64_t w = 1; w < p.updates; ++w) rig.update(tx, i * 8 + w, i);
    rig.commit(tx);  // END is a record, too
    logged.fetch_add(p.updates, std::memory_order_relaxed);
  }
  const double seconds = seconds_since(start);
  over = true;
  if (beside.joinable()) beside.join();
  return {{"seconds", seconds}, {"checkpoints", made.load()}, {"records_left", rig.records()}};
}

// Threads with one log, or with one log per thread, where no thread waits for another: the upper
// bound for a log without a lock.
Json threads(const Point& p) {
  RigOptions options = p.rig;
  options.logs = p.distributed ? p.threads : 1;
  Rig rig(options);
  std::atomic<std::uint32_t> ready{0};
  std::vector<std::thread> all;
  const std::uint64_t each = p.records / p.threads / p.updates;
  Clock::time_point start;
  for (std::uint32_t t = 0; t < p.threads; ++t)
    all.emplace_back([&, t] {
      if (++ready == p.threads) start = Clock::now();
      while (ready < p.threads) std::this_thread::yield();
      const std::uint64_t own = t * Rig::table_words / p.threads, log = p.distributed ? t : 0;
      for (std::uint64_t i = 0; i < each; ++i) {
        ManagedTransaction tx;
        for (std::uint64_t w = 1; w < p.updates; ++w)
          rig.update(tx, own + i * 8 % 16'000 + w, i, log);
        rig.commit(tx, true, log);
      }
    });
  for (auto& t : all) t.join();
  const double seconds = seconds_since(start);
  return {{"seconds", seconds},
          {"records_a_second", static_cast<double>(each * p.threads * p.updates) / seconds}};
}

int run(int argc, char** argv) {
  CLI::App app{"One point of the REWIND paper's figures 3 to 6, on the emulated medium."};
  Point p;
  std::string figure, version = "optimized";
  bool force = false, json = false;
  const std::map<std::string, Json (*)(const Point&)> figures = {
      {"intensity", intensity}, {"skip", skip},   {"rollback", rollback},
      {"recovery", recovery},   {"mixed", mixed}, {"checkpoint", checkpoint},
      {"threads", threads}};
  const std::map<std::string, perdure::papers::rewind::LogVersion> versions = {
      {"simple", perdure::papers::rewind::LogVersion::simple},
      {"optimized", perdure::papers::rewind::LogVersion::optimized},
      {"batch", perdure::papers::rewind::LogVersion::batch}};
  std::vector<std::string> names;
  for (const auto& [name, f] : figures) names.push_back(name);
  app.add_option("figure", figure, "which")->required()->check(CLI::IsMember(names));
  app.add_option("--layers", p.rig.composition.layers, "of the log: 1 or 2 (1)")
      ->check(CLI::Range(1, 2));
  app.add_flag("--force", force, "the force policy");
  app.add_option("--version", version, "of the log: simple, optimized, batch (optimized)")
      ->check(CLI::IsMember({"simple", "optimized", "batch"}));
  app.add_option("--updates", p.updates, "stores of a transaction")->check(CLI::PositiveNumber);
  app.add_option("--skip", p.skip, "records of others between two of the transaction");
  app.add_option("--percent", p.percent,
                 "intensity: of the time, on stores; mixed: of the transactions, left unfinished")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--records", p.records, "checkpoint, threads: log records in all");
  app.add_option("--every", p.every,
                 "checkpoint: records between two checkpoints; 0: none is made");
  app.add_option("--threads", p.threads, "threads: how many")->check(CLI::Range(1, 8));
  app.add_flag("--distributed", p.distributed, "threads: a log each");
  app.add_option("--log-size", p.rig.log_bytes, "bytes");
  app.add_option("--delays", p.rig.delays, "of the emulated medium (docs/media.md)");
  app.add_option("--dir", p.rig.directory, "an empty folder for the pool, on tmpfs");
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  p.rig.composition.force = force;
  p.rig.composition.version = versions.at(version);
  const Json found = figures.at(figure)(p);
  if (json)
    std::cout << found.dump() << '\n';
  else
    for (const auto& [name, value] : found.items()) std::cout << name << ' ' << value << '\n';
  return 0;
}

}  // namespace
}  // namespace bench::rewind

int main(int argc, char** argv) {
  try {
    return bench::rewind::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "perdure_bench_rewind_log: %s\n", e.what());
    return 1;
  }
}
