// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_rewind_tree: one measurement for REWIND's figures 7 to 10
// (papers/figures/rewind_tree.py). It makes a tree of 100,000 records and then measures:
//   run       a number of operations, with a number of them per transaction and a percentage of
//             updates: their seconds
//   rollback  the rollback of one transaction with a number of updates: its seconds
//   recovery  a child process runs a number of transactions, and exits without closing: the seconds
//             of the next opening
//   threads   each thread runs a number of operations, an insert/delete pair or a look-up: the
//             seconds until all have ended
// The tree is closed and opened before the measurement, so that the log contains nothing of its
// making, and audited afterwards. Exit status: 0, 1 when something failed, 2 for wrong arguments.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/harness/killed.hpp"
#include "bench/harness/rng.hpp"
#include "bench/harness/scratch.hpp"
#include "bench/rewind/tree.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Asked {
  TreeSetting setting;
  std::string experiment = "run";
  std::uint64_t operations = 200'000, per_transaction = 1, transactions = 400, seed = 1;
  unsigned percent = 100;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<Tree> open(const TreeSetting& setting) {
#ifdef PERDURE_BENCH_BERKELEYDB
  if (setting.system == "berkeleydb") return open_berkeleydb_tree(setting);
#endif
  return open_perdure_tree(setting);
}

/// On a file REWIND's checkpoint waits for the device once per record that it removes, which takes
/// minutes for a whole tree: recovery empties the log at once.
bool never_closed(const TreeSetting& setting) {
  return setting.store.medium == "file" && setting.system != "berkeleydb";
}

/// Inserts half of all keys.
void fill(Tree& tree) {
  std::vector<TreeOp> order(Tree::keys);
  for (std::uint64_t i = 0; i < Tree::keys; ++i) order[i] = {i, true};
  Rng rng(20, 20);
  for (std::uint64_t i = Tree::keys; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  constexpr std::uint64_t a_transaction = 1000;
  for (std::uint64_t i = 0; i < Tree::filled; i += a_transaction)
    tree.transact(std::span(order).subspan(i, a_transaction));
}

/// A tree of half of all keys, with nothing of its making in the log.
std::unique_ptr<Tree> made(const TreeSetting& setting) {
  if (never_closed(setting)) {
    in_a_killed_process([&] {
      TreeSetting fast = setting;
      fast.store.log_group = 1000;
      fill(*open(fast).release());
    });
    return open(setting);
  }
  auto tree = open(setting);
  fill(*tree);
  tree->reopen();
  return tree;
}

std::vector<TreeOp> drawn(const Asked& asked, std::uint64_t n, unsigned percent,
                          std::uint64_t stream = 0) {
  std::vector<TreeOp> ops(n);
  Rng rng(asked.seed, stream);
  for (TreeOp& op : ops) op = {rng.below(Tree::keys), rng.below(100) < percent};
  return ops;
}

/// The expected number of records, after each updated key in `ops` was toggled.
class Expected {
 public:
  Expected() : present_(Tree::keys, false) {
    std::vector<std::uint64_t> order(Tree::keys);
    std::iota(order.begin(), order.end(), 0U);
    Rng rng(20, 20);
    for (std::uint64_t i = Tree::keys; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    for (std::uint64_t i = 0; i < Tree::filled; ++i) present_[order[i]] = true;
  }
  void toggled(std::span<const TreeOp> ops) {
    for (const TreeOp& op : ops)
      if (op.update) present_[op.key] = !present_[op.key];
  }
  void look(Tree& tree) const {
    const auto expected =
        static_cast<std::uint64_t>(std::count(present_.begin(), present_.end(), true));
    if (const std::uint64_t found = tree.audit(); found != expected)
      throw std::runtime_error("found " + std::to_string(found) + " records, expected " +
                               std::to_string(expected));
  }

 private:
  std::vector<bool> present_;
};

void play(Tree& tree, std::span<const TreeOp> ops, std::uint64_t per_transaction) {
  for (std::size_t i = 0; i < ops.size(); i += per_transaction)
    tree.transact(ops.subspan(i, std::min<std::size_t>(per_transaction, ops.size() - i)));
}

Json run(const Asked& asked) {
  auto tree = made(asked.setting);
  const auto ops = drawn(asked, asked.operations, asked.percent);
  const std::size_t warm = ops.size() / 20;
  const auto warming = drawn(asked, warm, asked.percent, 1);
  play(*tree, warming, asked.per_transaction);
  const auto start = Clock::now();
  play(*tree, ops, asked.per_transaction);
  Json j{{"seconds", since(start)}, {"describe", tree->describe()}};
  Expected expected;
  expected.toggled(warming);
  expected.toggled(ops);
  expected.look(*tree);
  if (never_closed(asked.setting)) (void)tree.release();
  return j;
}

Json rollback(const Asked& asked) {
  const auto tree = made(asked.setting);
  const auto ops = drawn(asked, asked.operations, 100);
  const auto start = Clock::now();
  const double back = tree->roll_back(ops);
  Json j{
      {"seconds", back}, {"forward_seconds", since(start) - back}, {"describe", tree->describe()}};
  Expected().look(*tree);
  return j;
}

Json recovery(const Asked& asked) {
  const auto ops = drawn(asked, asked.transactions * asked.per_transaction, 100);
  in_a_killed_process([&] { play(*made(asked.setting).release(), ops, asked.per_transaction); });
  const auto start = Clock::now();
  const auto tree = open(asked.setting);
  Json j{{"seconds", since(start)},
         {"transactions", tree->recovered()},
         {"describe", tree->describe()}};
  Expected expected;
  expected.toggled(ops);
  expected.look(*tree);
  return j;
}

/// Thread t's percentage of look-ups: from 20 to 80, on average 50.
unsigned lookups_of(unsigned t, unsigned threads) {
  return threads == 1 ? 50 : 20 + 60 * t / (threads - 1);
}

Json threads(const Asked& asked) {
  const auto tree = made(asked.setting);
  const unsigned n = asked.setting.threads;
  std::atomic<unsigned> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::string> failed(n);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < n; ++t)
    all.emplace_back([&, t] {
      try {
        const auto ops = drawn(asked, asked.operations, 100 - lookups_of(t, n), t);
        ready.fetch_add(1);
        while (!go.load(std::memory_order_relaxed)) std::this_thread::yield();
        for (const TreeOp& op : ops) {
          tree->transact({&op, 1});
          if (op.update) tree->transact({&op, 1});  // the other half of the pair
        }
      } catch (const std::exception& e) {
        failed[t] = e.what();
      }
    });
  while (ready.load() < n) std::this_thread::yield();
  const auto start = Clock::now();
  go = true;
  for (auto& thread : all) thread.join();
  Json j{{"seconds", since(start)}, {"describe", tree->describe()}};
  for (const auto& why : failed)
    if (!why.empty()) throw std::runtime_error(why);
  Expected().look(*tree);
  return j;
}

int main_of(int argc, char** argv) {
  CLI::App app{"One measurement of a B+-tree for REWIND's figures 7 to 10."};
  Asked asked;
  Setting& store = asked.setting.store;
  store.directory = "/dev/shm";
  bool json = false;
  app.add_option("--system", asked.setting.system,
                 "berkeleydb, shadow, or a composition of REWIND: rewind-1l-nfp-batch/none")
      ->required();
  app.add_option("--experiment", asked.experiment, "what is measured")
      ->check(CLI::IsMember({"run", "rollback", "recovery", "threads"}));
  app.add_option("--operations", asked.operations, "operations, a thread's in 'threads'")
      ->check(CLI::PositiveNumber);
  app.add_option("--per-transaction", asked.per_transaction, "operations in a transaction")
      ->check(CLI::PositiveNumber);
  app.add_option("--transactions", asked.transactions, "transactions, in 'recovery'")
      ->check(CLI::PositiveNumber);
  app.add_option("--percent", asked.percent, "of the operations that are updates, in 'run'")
      ->check(CLI::Range(0, 100));
  app.add_option("--threads", asked.setting.threads, "threads, in 'threads'")
      ->check(CLI::Range(1, 64));
  app.add_option("--seed", asked.seed, "of the random numbers");
  app.add_option("--dir", store.directory,
                 "where the files go (a directory of its own is made there, and removed)");
  app.add_option("--medium", store.medium, "emulated (the directory on tmpfs) or file")
      ->check(CLI::IsMember({"emulated", "file"}));
  app.add_option("--delays", store.delays,
                 "what a written line costs on the emulated medium (docs/media.md)");
  app.add_option("--log-size", store.log_size,
                 "bytes of Perdure's log, a thread's where each has its own (0: its default)");
  app.add_option("--log-group", store.log_group,
                 "REWIND's batch logs: records that share a fence (0: its default)");
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  store.rings = asked.setting.threads;
  int status = 0;
  try {
    const Scratch scratch(store.directory);
    store.directory = scratch.path();
    const Json j = asked.experiment == "run"        ? run(asked)
                   : asked.experiment == "rollback" ? rollback(asked)
                   : asked.experiment == "recovery" ? recovery(asked)
                                                    : threads(asked);
    if (json)
      std::cout << j.dump() << '\n';
    else
      std::printf("%.6f s (%s)\n", j["seconds"].get<double>(),
                  j["describe"].get<std::string>().c_str());
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    status = 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s: %s\n", argv[0], asked.setting.system.c_str(), e.what());
    status = 1;
  }
  return status;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv); }
