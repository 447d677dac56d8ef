// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_softwrap_wraps: one measurement for SoftWrAP's Tables I and II and Figures 5 to 12
// (bench/figures/softwrap_wraps.py): wraps of n stores to random words of an array, at a rate or
// one after the other, by one or more threads. Printed: response times (from when a wrap was due),
// service times (from when it began), wraps per second, the medium's counters; with --trace each
// wrap's response time and the lines that were written back during it. `rate` ends with the last
// wrap; `rate_settled`, of all wraps including the warm-up, ends when all stores have been
// checkpointed. The words are checked afterwards, before and after the pool is closed and opened.
// Exit status: 0, 1 when something failed, 2 for wrong arguments.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/scratch.hpp"
#include "bench/softwrap/array.hpp"
#include "bench/softwrap/arrivals.hpp"
#include "bench/softwrap/hosts.hpp"

namespace bench::softwrap {
namespace {

using Json = nlohmann::ordered_json;

struct Asked {
  Setup setup;
  std::uint64_t array_bytes = std::uint64_t{1} << 30, wraps = 20'000, warm = 1000;
  unsigned elements = 10, reuse_percent = 0;
  double rate = 0;
  std::uint64_t trace = 0;  // the number of wraps at the end that are traced
};

struct Found {
  Times response, service;
  Json trace = Json::array();
  double seconds = 0, all_seconds = 0;  // of the recorded wraps, of all wraps
};

/// The wraps of one thread; the first `warm` of them are not recorded.
template <class Host>
void work(Host& host, Writer& writer, const Asked& asked, Found& found) {
  const Schedule schedule(asked.rate);
  std::uint64_t began_all = ticks(), flushed = 0;
  const std::uint64_t all = asked.warm + asked.wraps;
  const std::uint64_t traced = asked.trace == 0 ? all : all - std::min(asked.trace, asked.wraps);
  for (std::uint64_t i = 0; i < all; ++i) {
    writer.next();
    const std::uint64_t due = schedule.wait(i), began = ticks();
    if (i == asked.warm) began_all = asked.rate > 0 ? due : began;
    writer.wrap(host);
    const std::uint64_t ended = ticks();
    writer.note();
    if (i < asked.warm) continue;
    found.response.add(ended - due);
    found.service.add(ended - began);
    if (i < traced) continue;
    // Read after the wrap's end: before the next one is due, if the rate allows it.
    const std::uint64_t now = host.counts().flushed;
    found.trace.push_back({nanoseconds(due - schedule.start()) * 1e-6,
                           nanoseconds(ended - due) * 1e-3, i == traced ? 0 : now - flushed});
    flushed = now;
  }
  const std::uint64_t now = ticks();
  found.seconds = nanoseconds(now - began_all) * 1e-9;
  found.all_seconds = nanoseconds(now - schedule.start()) * 1e-9;
}

template <class Host>
Json measure(Host& host, const Asked& asked) {
  const unsigned n = asked.setup.threads;
  const std::uint64_t words = asked.array_bytes / 8, each = words / n / 8 * 8;  // whole lines
  make_array(host, words);
  host.ready();
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<Found> found;
  for (unsigned t = 0; t < n; ++t) {
    writers.push_back(
        std::make_unique<Writer>(t * each, each, asked.elements, asked.reuse_percent, t));
    found.push_back({Times(asked.wraps), Times(asked.wraps)});
  }
  const Counts before = host.counts();
  std::atomic<unsigned> ready{0};
  std::vector<std::string> failed(n);
  std::vector<std::thread> others;
  const auto worker = [&](unsigned t) {
    try {
      ready.fetch_add(1);
      while (ready.load(std::memory_order_relaxed) < n) std::this_thread::yield();
      work(host, *writers[t], asked, found[t]);
    } catch (const std::exception& e) {
      failed[t] = e.what();
    }
  };
  for (unsigned t = 1; t < n; ++t) others.emplace_back(worker, t);
  worker(0);
  const std::uint64_t last = ticks();
  for (auto& t : others) t.join();
  for (const auto& why : failed)
    if (!why.empty()) throw std::runtime_error(why);
  const Counts counted = host.counts() - before;
  host.settle();
  const double settling = nanoseconds(ticks() - last) * 1e-9;
  const Counts settled = host.counts() - before;

  Found& sum = found.front();
  double rate = 0, rate_settled = 0;
  for (unsigned t = 0; t < n; ++t) {
    rate += static_cast<double>(asked.wraps) / found[t].seconds;
    rate_settled +=
        static_cast<double>(asked.wraps + asked.warm) / (found[t].all_seconds + settling);
    if (t != 0) sum.response.add(found[t].response), sum.service.add(found[t].service);
  }
  const auto json_of = [](const Counts& c) {
    return Json{{"fences", c.fences},
                {"streamed_lines", c.streamed},
                {"flushed_lines", c.flushed},
                {"rounds", c.rounds}};
  };
  Json j{{"response_ns", sum.response.summary()},
         {"service_ns", sum.service.summary()},
         {"rate", rate},
         {"rate_settled", rate_settled},
         {"wraps", (asked.wraps + asked.warm) * n},
         {"counts", json_of(counted)},
         {"settled", json_of(settled)},
         {"describe", host.describe()}};
  if (asked.trace != 0) j["trace"] = sum.trace;
  for (const bool again : {false, true}) {
    if (again) host.reopen();
    for (auto& w : writers) w->audit(host);
    for (const auto& problem : host.check()) throw std::runtime_error(problem);
  }
  return j;
}

void print(const Json& j) {
  const auto& c = j["counts"];
  const double wraps = j["wraps"].get<double>();
  std::printf(
      "%.0f ns to respond, %.0f wraps/s; of a wrap: %.3f fences, %.3f streamed and %.3f flushed "
      "lines (%s)\n",
      j["response_ns"]["typical"].get<double>(), j["rate"].get<double>(),
      c["fences"].get<double>() / wraps, c["streamed_lines"].get<double>() / wraps,
      c["flushed_lines"].get<double>() / wraps, j["describe"].get<std::string>().c_str());
}

int main_of(int argc, char** argv) {
  CLI::App app{"One measurement of wraps over an array, for SoftWrAP's Figures 5 to 12."};
  Asked asked;
  Setup& s = asked.setup;
  bool json = false;
  app.add_option("--system", s.system,
                 "non-atomic, undo-log, softwrap/none, softwrap-local/none or shadow/none")
      ->required();
  app.add_option(
      "--dir", s.directory,
      "where the file goes, on tmpfs (a directory of its own is made there, and removed)");
  app.add_option("--tw", s.tw_ns,
                 "ns that a line takes to leave the write buffer; 0: no delay (1000)")
      ->check(CLI::Range(0, 1'000'000));
  app.add_flag("--one-buffer", s.one_buffer,
               "all threads share one write buffer; else each has one of its own");
  app.add_option("--alias-entries", s.alias_entries, "of each alias table (8192)")
      ->check(CLI::Range(64U, 1U << 28));
  app.add_flag("--wait-at-threshold", s.wait_at_threshold,
               "SoftWrAP: a wrap waits where a table is at its threshold, as in the paper");
  app.add_flag("--stream-home", s.stream_home,
               "SoftWrAP: the data region gets its words past the cache");
  app.add_option("--log-size", s.log_size, "bytes of each thread's log (16 MiB)")
      ->check(CLI::Range(1U << 16, 1U << 30));
  app.add_option("--threads", s.threads, "each with a part of the array")
      ->check(CLI::Range(1U, 16U));
  app.add_option("--array-bytes", asked.array_bytes, "of the array (1 GiB)")
      ->check(CLI::Range(std::uint64_t{1} << 16, std::uint64_t{4} << 30));
  app.add_option("--wraps", asked.wraps, "of each thread, measured (20000)")
      ->check(CLI::PositiveNumber);
  app.add_option("--warm", asked.warm, "of each thread before (1000)");
  app.add_option("--elements", asked.elements, "words that a wrap stores to (10)")
      ->check(CLI::Range(1U, 4096U));
  app.add_option("--reuse", asked.reuse_percent, "% of the elements that the wrap before had, too")
      ->check(CLI::Range(0, 100));
  app.add_option("--rate", asked.rate,
                 "wraps a second that arrive at each thread; 0: one after the other")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--trace", asked.trace,
                 "prints when each of the last wraps was due (ms), its response time (us), lines "
                 "written back since");
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    const Scratch scratch(s.directory);
    s.directory = scratch.path();
    s.data_size = asked.array_bytes;
    Json j;
    with_host<ArrayRoot>(s, [&](auto& host) { j = measure(host, asked); });
    if (json)
      std::cout << j.dump() << '\n';
    else
      print(j);
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s: %s\n", argv[0], s.system.c_str(), e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bench::softwrap

int main(int argc, char** argv) { return bench::softwrap::main_of(argc, argv); }
