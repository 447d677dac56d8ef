// SPDX-License-Identifier: BSD-3-Clause
//
// One run of TPC-C's new order: load a warehouse into a system, let its terminals enter orders for
// a time, audit, open again if the system can, and audit again. Or a kill: a child process enters
// orders until it is killed, and its pool is recovered and audited (check_recovery).
// Thread safety: one caller; run() starts and joins its own threads.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/timed.hpp"
#include "bench/tpcc/locks.hpp"
#include "bench/workloads/tpcc.hpp"
#include "bench/workloads/tpcc_audit.hpp"
#include "bench/workloads/tpcc_load.hpp"

namespace bench::tpcc {

struct Setup {
  std::string system = "nvm";
  std::string layout = "naive";  ///< naive, optimised
  bool distributed = false;      ///< one log per thread
  unsigned threads = 10;
  double seconds = 2, warmup = 0.2;
  std::uint64_t seed = 1;
  std::string delays = "rewind";
  std::string directory = "/dev/shm";  ///< the directory of the pool, made by the caller
  std::uint64_t log_size = std::uint64_t{64} << 20;
};

struct Report {
  double tpm = 0, seconds = 0, cpu_seconds = 0;
  std::uint64_t transactions = 0, aborted = 0;  ///< including the warm-up, as in the counters
  std::map<std::string, double> counters;       ///< of the terminals' transactions
  std::string describe;
  std::vector<std::string> problems;
};

/// One terminal.
template <class Host, class Workload>
struct Terminal {
  Host& host;
  Locks& locks;
  Rng rng;
  std::uint64_t entered = 0;

  Step operator()() {
    const Input in = draw(rng, ++entered);
    const Locks::Held held(locks, in);
    try {
      const Answer answer = host.update([&in](auto& tx, typename Workload::Data& root) {
        return Workload::new_order(tx, root, in, Host::rolls_back);
      });
      return {.wrote = true, .grown = answer.complete ? 1 : 0};
    } catch (const RolledBack&) {
      return {};
    }
  }
  void settle() { host.settle(); }
};

template <class Host, class Workload>
std::vector<std::string> audit(Host& host, const Expected& expected) {
  std::vector<std::string> problems = host.view([&](auto& tx, const typename Workload::Data& root) {
    return Audit<typename Workload::Data>(tx, root, expected).problems();
  });
  for (auto& problem : host.check()) problems.push_back(std::move(problem));
  return problems;
}

template <class Workload, class Host>
Report run(Host& host, const Setup& setup, Granularity granularity) {
  Loader<Workload>::load(host);
  if constexpr (requires { host.loaded(); }) host.loaded();
  Locks locks(granularity);
  const auto before = host.counters();
  const Cell cell{.workload = "new-order",
                  .threads = setup.threads,
                  .seconds = setup.seconds,
                  .warmup = setup.warmup,
                  .seed = setup.seed};
  const Tally tally = run_timed(
      cell, [&](unsigned t) { return Terminal<Host, Workload>{host, locks, Rng(setup.seed, t)}; });

  Report report;
  report.tpm = tally.rate * 60;
  report.seconds = tally.seconds;
  report.cpu_seconds = tally.cpu_seconds;
  report.transactions = tally.all_operations;
  report.aborted = tally.all_operations - static_cast<std::uint64_t>(tally.grown);
  for (const auto& [name, value] : host.counters()) {
    const auto old = before.find(name);
    report.counters[name] = value - (old == before.end() ? 0.0 : old->second);
  }
  report.describe = host.describe();
  const Expected expected{
      .orders = Host::rolls_back ? report.transactions - report.aborted : report.transactions,
      .unfinished = Host::rolls_back ? 0 : report.aborted};
  report.problems = audit<Host, Workload>(host, expected);
  if (host.reopen())
    for (auto& problem : audit<Host, Workload>(host, expected))
      report.problems.push_back("opened again: " + problem);
  return report;
}

/// `open()` makes a host on the same pool each time. The child is killed during its transactions.
template <class Workload, class Open>
Report check_recovery(Open open, const Setup& setup, Granularity granularity) {
  int told[2];
  if (::pipe(told) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    try {
      auto host = open();
      using Host = std::remove_reference_t<decltype(*host)>;
      Loader<Workload>::load(*host);
      if (::write(told[1], "r", 1) != 1) ::_exit(1);
      Locks locks(granularity);
      const Cell cell{.workload = "new-order",
                      .threads = setup.threads,
                      .seconds = 3600,
                      .warmup = 0,
                      .seed = setup.seed};
      run_timed(cell, [&](unsigned t) {
        return Terminal<Host, Workload>{*host, locks, Rng(setup.seed, t)};
      });
    } catch (const std::exception&) {}
    ::_exit(1);  // it should have been killed
  }
  ::close(told[1]);
  char ready = 0;
  const bool loaded = ::read(told[0], &ready, 1) == 1;
  ::close(told[0]);
  if (loaded) std::this_thread::sleep_for(std::chrono::duration<double>(setup.seconds));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!loaded || !WIFSIGNALED(status))
    throw std::runtime_error("the process that was to be killed ended by itself");
  Report report;
  auto host = open();
  using Host = std::remove_reference_t<decltype(*host)>;
  report.describe = host->describe();
  report.problems = audit<Host, Workload>(*host, Expected{});
  return report;
}

/// The systems, one translation unit per layout. They throw std::invalid_argument for an unknown
/// system.
Report run_nvm(const Setup& setup);
Report run_naive(const Setup& setup, bool kill);
Report run_optimised(const Setup& setup, bool kill);

}  // namespace bench::tpcc
