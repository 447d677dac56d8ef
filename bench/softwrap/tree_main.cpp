// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_softwrap_tree: one measurement for SoftWrAP's Figures 13 and 14
// (bench/figures/softwrap_tree.py): an empty B+-tree (stx_tree.hpp) gets a number of keys, in their
// order or in a random one, one wrap per key. Printed: ns per insertion, in total and for each
// tenth of them; reads and writes of 8 bytes that went through the tree's hooks; the number of
// lines if consecutive writes to one line count once; and the medium's counters. `settled_ns` ends
// when the last insertion has been checkpointed, too. The whole tree is then checked: each key and
// its data, in order through the leaves and from the top, before and after the pool was closed and
// opened. Exit status: 0, 1 when something failed, 2 for wrong arguments.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/scratch.hpp"
#include "bench/softwrap/arrivals.hpp"
#include "bench/softwrap/counted.hpp"
#include "bench/softwrap/hosts.hpp"
#include "bench/softwrap/stx_tree.hpp"

namespace bench::softwrap {
namespace {

using Json = nlohmann::ordered_json;

template <class Model>
using Root16 = StxRoot<Slots16, Model>;
template <class Model>
using RootOfInts = StxRoot<SlotsOfInts, Model>;

struct Asked {
  Setup setup;
  std::uint64_t inserts = 1'000'000;
  bool random = false, as_ints = false;
};

constexpr unsigned parts = 10;

std::uint64_t data_of(std::uint64_t key) { return mix(key); }

std::vector<std::uint64_t> keys(const Asked& asked) {
  std::vector<std::uint64_t> order(asked.inserts);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  if (!asked.random) return order;
  Rng rng(11, 0);
  for (std::uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

template <class Host>
void audit(Host& host, std::uint64_t n) {
  std::vector<std::string> problems;
  host.view([&](auto& tx, const auto& root) {
    using Root = std::remove_cvref_t<decltype(root)>;
    problems = StxTree<Root>::audit(tx, root, n, data_of);
  });
  for (auto& problem : host.check()) problems.push_back(std::move(problem));
  if (!problems.empty()) throw std::runtime_error(problems.front());
}

template <class Host>
Json measure(Host& host, const Asked& asked) {
  const auto order = keys(asked);
  Accesses all;
  host.ready();
  const Counts before = host.counts();
  std::uint64_t refused = 0;
  std::vector<double> part_ns;
  const std::uint64_t start = ticks();
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t first = order.size() * part / parts,
                        end = order.size() * (part + 1) / parts, began = ticks();
    for (std::uint64_t i = first; i < end; ++i) {
      Accesses n;
      bool inserted = false;
      host.wrap([&](auto& tx, auto& root) {
        n = {};  // a wrap that found no log space runs again
        Counted counted(tx, n);
        inserted = StxTree<std::remove_cvref_t<decltype(root)>>::insert(counted, root, order[i],
                                                                        data_of(order[i]));
      });
      refused += inserted ? 0 : 1;
      all.reads += n.reads;
      all.writes += n.writes;
      all.lines += n.lines;
    }
    part_ns.push_back(nanoseconds(ticks() - began) / static_cast<double>(end - first));
  }
  const double unsettled = nanoseconds(ticks() - start);
  host.settle();
  const double settled = nanoseconds(ticks() - start);
  const Counts counted = host.counts() - before;
  if (refused != 0) throw std::runtime_error(std::to_string(refused) + " keys were refused");
  const auto n = static_cast<double>(asked.inserts);
  Json j{{"ns", unsettled / n},
         {"settled_ns", settled / n},
         {"part_ns", part_ns},
         {"reads", static_cast<double>(all.reads) / n},
         {"writes", static_cast<double>(all.writes) / n},
         {"write_lines", static_cast<double>(all.lines) / n},
         {"fences", static_cast<double>(counted.fences) / n},
         {"streamed_lines", static_cast<double>(counted.streamed) / n},
         {"flushed_lines", static_cast<double>(counted.flushed) / n},
         {"rounds", counted.rounds},
         {"describe", host.describe()}};
  audit(host, asked.inserts);
  host.reopen();
  audit(host, asked.inserts);
  return j;
}

int main_of(int argc, char** argv) {
  CLI::App app{"Insertions into a B+-tree, for SoftWrAP's Figures 13 and 14."};
  Asked asked;
  Setup& s = asked.setup;
  s.alias_entries = 4096;
  bool json = false;
  app.add_option("--system", s.system,
                 "non-atomic, undo-log, softwrap/none, softwrap-local/none or shadow/none")
      ->required();
  app.add_option("--inserts", asked.inserts, "of as many keys (1000000)")
      ->check(CLI::Range(parts, 20'000'000U));
  app.add_flag("--random", asked.random, "in a random order; else in the keys'");
  app.add_flag("--slots-of-ints", asked.as_ints,
               "nodes of as many slots as for 4-byte keys and data, 32 and 21; else of 256 bytes, "
               "16 and 16");
  app.add_option(
      "--dir", s.directory,
      "where the file goes, on tmpfs (a directory of its own is made there, and removed)");
  app.add_option("--tw", s.tw_ns,
                 "ns that a line takes to leave the write buffer; 0: no delay (1000)")
      ->check(CLI::Range(0, 1'000'000));
  app.add_flag("--one-buffer", s.one_buffer,
               "all threads share one write buffer; else each has one of its own");
  app.add_option("--alias-entries", s.alias_entries, "of each alias table (4096)")
      ->check(CLI::Range(64U, 1U << 28));
  app.add_option("--log-size", s.log_size, "bytes of each thread's log (16 MiB)")
      ->check(CLI::Range(1U << 16, 1U << 30));
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    const Scratch scratch(s.directory);
    s.directory = scratch.path();
    // Half-full leaves, and the nodes above them.
    s.data_size = (std::uint64_t{64} << 20) + asked.inserts * 128;
    Json j;
    const auto with = [&](auto& host) { j = measure(host, asked); };
    if (asked.as_ints)
      with_host<RootOfInts>(s, with);
    else
      with_host<Root16>(s, with);
    if (json)
      std::cout << j.dump() << '\n';
    else
      std::printf(
          "%.0f ns an insertion; %.1f reads, %.1f writes in %.1f lines, %.2f fences, %.2f streamed "
          "and %.2f flushed lines (%s)\n",
          j["ns"].get<double>(), j["reads"].get<double>(), j["writes"].get<double>(),
          j["write_lines"].get<double>(), j["fences"].get<double>(),
          j["streamed_lines"].get<double>(), j["flushed_lines"].get<double>(),
          j["describe"].get<std::string>().c_str());
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
