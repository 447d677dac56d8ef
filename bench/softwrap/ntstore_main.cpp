// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_softwrap_ntstore: one point of SoftWrAP's Figure 4 (papers: SoftWrAP, MSST '15,
// section V-B.1): the time of a non-temporal store in a group of n, at random or consecutive
// places, on DRAM or behind the emulated write buffer. A store is a word of 8 bytes here, of 4 in
// the paper. A random store streams a line that contains nothing else; sequential stores are
// gathered into lines, as the processor's write-combining buffers gather the paper's, and each full
// line is streamed once. --by says how else scattered words may reach the data region (sections
// IV-A and IV-D: "streaming", "memory scatter instructions"). Printed: ns per store in the group
// alone, as in the paper, and including the fence after it. Exit status: 0, or 1 when something
// failed.
#include <immintrin.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/scratch.hpp"
#include "bench/softwrap/arrivals.hpp"
#include "bench/softwrap/setup.hpp"

namespace bench::softwrap {
namespace {

constexpr std::uint64_t line = perdure::medium::line_bytes, words = line / 8;

struct Asked {
  Setup setup;
  std::uint64_t group = 8, stores = 20'000;
  bool sequential = false;
  /// stream: whole lines past the cache; words: words past the cache; store: stored and written
  /// back; scatter: the same, eight by one instruction (avx512f).
  std::string by = "stream";
};

struct Group {
  std::uint64_t first = 0;            // sequential: the line where it begins
  std::vector<std::uint64_t> places;  // random: lines
};

/// Stores word `at` at the beginning of each line `at` of the group, by eights.
__attribute__((target("avx512f"))) void scatter(std::byte* home, const Group& group) {
  for (std::size_t i = 0; i + words <= group.places.size(); i += words) {
    std::array<std::uint64_t, words> offsets;
    for (std::size_t k = 0; k < words; ++k) offsets[k] = group.places[i + k] * line;
    _mm512_i64scatter_epi64(home, _mm512_loadu_si512(offsets.data()),
                            _mm512_loadu_si512(group.places.data() + i), 1);
  }
}

/// Random places, one word each, otherwise than by whole lines.
void store_words(perdure::medium::Medium& medium, const Asked& asked, const Group& group) {
  if (asked.by == "words") {
    std::vector<perdure::medium::WordStore> list;
    for (const std::uint64_t at : group.places) list.push_back({at * line, at});
    return medium.stream_words(medium.log_bytes(), list);
  }
  if (asked.by == "store")
    for (const std::uint64_t at : group.places)
      medium.store(medium.log_bytes() + at * line, &at, sizeof at);
  else
    scatter(const_cast<std::byte*>(medium.data()), group);  // no medium has this: a cost alone
  for (const std::uint64_t at : group.places) medium.flush(medium.log_bytes() + at * line, line);
}

void store_all(perdure::medium::Medium& medium, const Asked& asked, const Group& group) {
  if (asked.by != "stream") return store_words(medium, asked, group);
  alignas(line) std::array<std::uint64_t, words> staged{};
  if (!asked.sequential) {
    for (const std::uint64_t at : group.places) {
      staged[0] = at;
      medium.stream(medium.log_bytes() + at * line, staged.data(), line);
    }
    return;
  }
  std::uint64_t at = medium.log_bytes() + group.first * line;
  for (std::uint64_t i = 0; i < asked.group; ++i) {
    staged[i % words] = i;
    if (i % words + 1 == words || i + 1 == asked.group) {
      medium.stream(at, staged.data(), line);
      at += line;
    }
  }
}

std::uint64_t lines_of(const perdure::medium::Medium& medium) {
  const auto c = medium.counters();
  return c.streamed_lines + c.flushed_lines;
}

void check(const Asked& asked) {
  if (asked.by == "stream") return;
  if (asked.sequential || asked.group % words != 0)
    throw std::invalid_argument(
        "--by " + asked.by + ": found " +
        (asked.sequential ? "--sequential" : "a group of " + std::to_string(asked.group)) +
        ", expected random places, a multiple of 8 in a group");
  if (asked.by == "scatter" && __builtin_cpu_supports("avx512f") == 0)
    throw std::invalid_argument("--by scatter: found a processor without avx512f");
}

nlohmann::ordered_json measure(const Asked& asked) {
  perdure::medium::OpenMedium how;
  how.path = asked.setup.directory + "/home";
  how.kind = "emulated";
  how.create = true;
  how.log_bytes = perdure::medium::region_align;
  how.data_bytes = asked.setup.data_size;
  how.delays = asked.setup.delays();
  const auto medium = perdure::medium::open_medium(how).value();
  touch_pages(medium->data(), medium->data_bytes());
  const std::uint64_t lines = medium->data_bytes() / line,
                      groups = std::max<std::uint64_t>(asked.stores / asked.group, 20);
  Rng rng(3, asked.group);
  Group group;
  group.places.resize(asked.group);
  std::uint64_t alone = 0, fenced = 0, before = 0;
  for (std::uint64_t g = 0; g < groups + groups / 10 + 1; ++g) {
    for (auto& at : group.places) at = rng.below(lines);
    group.first = rng.below(lines - asked.group / words - 1);
    // The groups up to here were the warm-up.
    if (g == groups / 10 + 1) alone = fenced = 0, before = lines_of(*medium);
    const std::uint64_t start = ticks();
    store_all(*medium, asked, group);
    alone += ticks() - start;
    medium->fence().or_throw();
    fenced += ticks() - start;
  }
  const double stores = static_cast<double>(groups * asked.group);
  return {{"ns", nanoseconds(alone) / stores},
          {"fenced_ns", nanoseconds(fenced) / stores},
          {"lines_a_store", static_cast<double>(lines_of(*medium) - before) / stores},
          {"describe", medium->describe()}};
}

int main_of(int argc, char** argv) {
  CLI::App app{"What a non-temporal store takes in a group, for SoftWrAP's Figure 4."};
  Asked asked;
  bool json = false;
  asked.setup.data_size = std::uint64_t{256} << 20;
  app.add_option("--group", asked.group, "stores between two fences (8)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--sequential", asked.sequential,
               "one behind the other; else each at a place of its own");
  app.add_option("--tw", asked.setup.tw_ns,
                 "ns that a line takes to leave the write buffer; 0: DRAM (1000)")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--by", asked.by,
                 "how words reach random places: stream (lines past the cache), words (words past "
                 "it), store (and write back), scatter (the same, eight by one instruction)")
      ->check(CLI::IsMember({"stream", "words", "store", "scatter"}));
  app.add_option("--stores", asked.stores, "in all, at least 20 groups (20000)")
      ->check(CLI::PositiveNumber);
  app.add_option("--bytes", asked.setup.data_size,
                 "that random stores go to, whole 2 MiB (256 MiB)")
      ->check(CLI::Range(1U << 21, 1U << 31));
  app.add_option(
      "--dir", asked.setup.directory,
      "where the file goes, on tmpfs (a directory of its own is made there, and removed)");
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    check(asked);
    const Scratch scratch(asked.setup.directory);
    asked.setup.directory = scratch.path();
    const auto j = measure(asked);
    if (json)
      std::cout << j.dump() << '\n';
    else
      std::printf("%.1f ns a store, %.1f with the fence (%s)\n", j["ns"].get<double>(),
                  j["fenced_ns"].get<double>(), j["describe"].get<std::string>().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bench::softwrap

int main(int argc, char** argv) { return bench::softwrap::main_of(argc, argv); }
