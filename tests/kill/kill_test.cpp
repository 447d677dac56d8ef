// SPDX-License-Identifier: BSD-3-Clause
//
// SIGKILL at random instants: random workloads on hash_map, map and vector, on every medium and
// durable engine that a machine without persistent memory has; 2,000 kills in total, spread evenly,
// a tenth of them with a sanitizer. See child.hpp for what is compared.
//
//   kill_test [--seed N] [--life N] [--kills N] [--keep] [--gtest_filter=...]
//
// A SIGKILL can't reveal a missing fence or flush: the recording medium's order tests do.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/engine/families.hpp"
#include "tests/kill/killer.hpp"

#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options() { return "halt_on_error=1 die_after_fork=0"; }
#endif

namespace perdure::kill {
namespace {

Settings settings;

constexpr std::uint64_t all_kills = 2000, configs = 24;
constexpr std::uint64_t each = (all_kills / slower + configs - 1) / configs;

class Kill : public ::testing::TestWithParam<Config> {};

template <class Container>
void kill(const Config& config) {
  Killer<Container> killer(config, settings);
  const std::string failed = killer.run();
  const Counts& c = killer.counts;
  const auto n = [](std::uint64_t v) { return std::to_string(v); };
  std::puts(("  " + n(c.kills) + " kills: " + n(c.in[started] + c.in[opening]) + " opening, " +
             n(c.in[opened] + c.in[verified]) + " recovered and comparing, " + n(c.in[working]) +
             " working, " + n(c.in[closing] + c.in[closed]) + " closing; " + n(c.unclean) +
             " recoveries of " + n(c.records) + " records, " + n(c.idempotent) +
             " of them twice; " + n(c.transactions) + " transactions, " + n(c.checkpoints) +
             " checkpoints, " + n(c.growths) + " growths")
                .c_str());
  if (!failed.empty()) ADD_FAILURE() << failed;
}

TEST_P(Kill, LosesNothing) {
  const Config& config = GetParam();
  if (config.container == "hash_map")
    kill<Hash>(config);
  else if (config.container == "map")
    kill<Tree>(config);
  else
    kill<List>(config);
}

std::vector<Config> table() {
  std::vector<Config> all;
  for (const char* medium : {"emulated", "file"})
    for (const char* engine : {"shadow", "dudetm"})
      for (const std::uint64_t threads : {1, 2})
        for (const char* container : {"hash_map", "map", "vector"})
          all.push_back({medium, engine, threads, container, each, false});
  for (const std::uint64_t threads : {1, 2})
    for (const char* container : {"hash_map", "map", "vector"})
      all.push_back({"emulated", "undo", threads, container, each / 4 + 1, false});
  for (const engine::EngineInfo& e : engine::registered())
    if ((test::is_rewind(e) || test::is_blurred(e) || test::is_softwrap(e)) && e.name == e.family)
      for (const char* container : {"hash_map", "map"})
        all.push_back({"emulated", std::string(e.name), container[0] == 'h' ? 2U : 1U, container,
                       each / 4 + 1,
                       e.family.ends_with("batch") || e.family == "bppm" || test::is_softwrap(e)});
  for (const char* engine : {"dudetm-inf", "dudetm-sync", "dudetm-combined", "dudetm/htm-stand-in"})
    for (const char* container : {"hash_map", "map"})
      all.push_back(
          {"emulated", engine, container[0] == 'h' ? 2U : 1U, container, each / 4 + 1, true});
  // In addition to the 2,000: at every call of the medium.
  for (const char* engine : {"shadow", "dudetm", "undo"})
    for (const std::uint64_t threads : {1, 2})
      for (const char* container : {"hash_map", "map", "vector"})
        all.push_back({"emulated", engine, threads, container, each, true});
  std::erase_if(all,
                [](const Config& c) { return !test::is_chosen(*engine::find_instance(c.engine)); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Random, Kill, ::testing::ValuesIn(table()),
                         [](const ::testing::TestParamInfo<Config>& p) {
                           return name_of(p.param);
                         });

}  // namespace
}  // namespace perdure::kill

int main(int argc, char** argv) {
  using perdure::kill::settings;
  ::testing::InitGoogleTest(&argc, argv);
  settings.seed = static_cast<std::uint64_t>(::time(nullptr)) * 1000 +
                  static_cast<std::uint64_t>(::getpid()) % 1000;
  // The build tree: a file system that has O_DIRECT, if there is one.
  settings.folder = std::filesystem::current_path();
  for (int i = 1; i < argc; ++i) {
    const auto is = [&](const char* name) {
      return std::strcmp(argv[i], name) == 0 && i + 1 < argc;
    };
    if (is("--seed"))
      settings.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (is("--life"))
      settings.only_life = std::strtoll(argv[++i], nullptr, 10);
    else if (is("--kills"))
      settings.kills = std::strtoull(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--keep") == 0)
      settings.keep = true;
    else {
      std::fprintf(stderr,
                   "kill_test: found '%s', expected [--seed N] [--life N] [--kills N] [--keep] and "
                   "--gtest_ options\n",
                   argv[i]);
      return 2;
    }
  }
  std::printf("kill_test --seed %llu\n", static_cast<unsigned long long>(settings.seed));
  return RUN_ALL_TESTS();
}
