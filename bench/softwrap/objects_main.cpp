// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_softwrap_objects: what a wrap takes that gives one of many objects new bytes:
// written through the log and the aliases (wrapWrite), or by a new block and a pointer (wrapFlip);
// SoftWrAP, MSST '15, section V-C.2. One thread, one wrap after the other. Printed: microseconds a
// wrap, lines of the log, lines that go to the data region. Exit status: 0, or 1 when something
// failed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/scratch.hpp"
#include "bench/softwrap/arrivals.hpp"
#include "bench/softwrap/setup.hpp"
#include "papers/softwrap/wrap_calls.hpp"

namespace bench::softwrap {
namespace {

struct Objects {
  static constexpr const char* layout_id = "bench::softwrap::Objects/1";
  static constexpr std::uint64_t count = 1024;
  void* object[count];
  template <class Tx, class F>
  void each_block(Tx&, F&& f) const {
    for (void* const one : object)
      if (one != nullptr) f(one);
  }
};

struct Asked {
  Setup setup;
  std::uint64_t bytes = 1024, wraps = 5000;
  bool flip = false;
};

nlohmann::ordered_json measure(const Asked& asked) {
  perdure::Options options;
  options.medium = "emulated";
  options.engine = asked.setup.system;
  options.engine_options = asked.setup.softwrap();
  options.creation.threads = 4;
  options.creation.log_size = asked.setup.log_size * options.creation.threads;
  options.creation.initial_size = asked.setup.data_size;
  options.creation.max_size = std::uint64_t{8} << 30;
  options.medium_options.delays = asked.setup.delays();
  perdure::papers::softwrap::SoftWrAP<Objects> sw(asked.setup.directory + "/pool.perdure", options);
  touch_pages(sw.file().medium().at(0), sw.file().medium().log_bytes());
  touch_pages(sw.file().medium().data(), sw.file().data_bytes());
  std::vector<unsigned char> bytes(asked.bytes);
  Rng rng(3, asked.bytes);
  // A wrap whose table or bucket is full is rolled back, and opened again.
  const auto whole = [&](auto&& f) {
    for (int left = 20;; --left) {
      try {
        sw.wrapOpen();
        f();
        return sw.wrapClose();
      } catch (const perdure::error& e) {
        if (e.code() != perdure::Code::busy || left == 0) throw;
      }
    }
  };
  const auto wrap = [&](void** where) {
    bytes[0] = static_cast<unsigned char>(bytes[0] + 1);
    whole([&] {
      if (asked.flip)
        sw.wrapFlip(where, bytes.data(), bytes.size());
      else
        sw.wrapWrite(sw.wrapLoad(where), bytes.data(), bytes.size());
    });
  };
  for (void*& where : sw.root().object) {
    whole([&] { sw.wrapStore(&where, sw.pmalloc(asked.bytes)); });
    wrap(&where);
  }
  sw.checkpoint();
  const auto before = sw.stats();
  const std::uint64_t start = ticks();
  for (std::uint64_t n = 0; n < asked.wraps; ++n)
    wrap(&sw.root().object[rng.below(Objects::count)]);
  const std::uint64_t closed = ticks() - start;
  sw.checkpoint();
  const std::uint64_t settled = ticks() - start;
  const auto after = sw.stats();
  const auto a_wrap = [&](std::uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(asked.wraps);
  };
  const auto cost = after.medium - before.medium;
  const nlohmann::ordered_json answer = {
      {"us", nanoseconds(closed) / 1e3 / static_cast<double>(asked.wraps)},
      {"settled_us", nanoseconds(settled) / 1e3 / static_cast<double>(asked.wraps)},
      {"log_lines", a_wrap((after.log_bytes - before.log_bytes) / 64)},
      {"lines", a_wrap(cost.streamed_lines + cost.flushed_lines)},
      {"fences", a_wrap(cost.fences)},
      {"describe", sw.file().medium().describe()}};
  sw.close();
  return answer;
}

int main_of(int argc, char** argv) {
  CLI::App app{"What a wrap takes that gives an object new bytes, in SoftWrAP's calls."};
  Asked asked;
  bool json = false;
  std::string by = "write";
  Setup& s = asked.setup;
  s.data_size = std::uint64_t{512} << 20;
  app.add_option("--system", s.system, "softwrap (aliases for all wraps) or softwrap-local")
      ->required()
      ->check(CLI::IsMember({"softwrap", "softwrap-local"}));
  app.add_option("--by", by, "write: wrapWrite; flip: wrapFlip (write)")
      ->check(CLI::IsMember({"write", "flip"}));
  app.add_option("--bytes", asked.bytes, "of an object; there are 1,024 (1024)")
      ->check(CLI::Range(8U, 1U << 15));
  app.add_option("--wraps", asked.wraps, "measured (5000)")->check(CLI::PositiveNumber);
  app.add_option("--tw", s.tw_ns,
                 "ns that a line takes to leave the write buffer; 0: no delay (1000)")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--alias-entries", s.alias_entries, "of each alias table (8192)")
      ->check(CLI::Range(64U, 1U << 28));
  app.add_flag("--stream-home", s.stream_home, "the data region gets its words past the cache");
  app.add_option(
      "--dir", s.directory,
      "where the pool goes, on tmpfs (a directory of its own is made there, and removed)");
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    asked.flip = by == "flip";
    const Scratch scratch(s.directory);
    s.directory = scratch.path();
    const auto j = measure(asked);
    if (json)
      std::cout << j.dump() << '\n';
    else
      std::printf(
          "%.2f us a wrap, %.2f until its stores are home; %.1f lines of log, %.1f in all\n",
          j["us"].get<double>(), j["settled_us"].get<double>(), j["log_lines"].get<double>(),
          j["lines"].get<double>());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bench::softwrap

int main(int argc, char** argv) { return bench::softwrap::main_of(argc, argv); }
