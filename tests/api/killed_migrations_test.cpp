// SPDX-License-Identifier: BSD-3-Clause
//
// Processes that open a pool as version 2 of a program are killed at random instants. After each
// kill the pool is opened again, until one opening is allowed to finish: then all data must be
// there (SWITCH-1, SWITCH-2, REBUILD-1, MOVE-1, MOVE-2). After every fourth kill or so, version 1
// opens it first.
//
//   killed_migrations_test [--kills N] [--rows N] [--seed N] [--json] [--gtest_...]
//
// ./dev explore --migrations kills 100 openings of pools of 100,000 elements.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "testing/persistency.hpp"
#include "tests/api/version_pairs.hpp"
#include "tests/medium/scratch.hpp"
#include "tests/support/comes.hpp"

namespace perdure {
namespace {

struct Settings {
  std::uint64_t kills = 25, rows = 3'000, seed = 1;
  bool json = false;
};
Settings settings;
nlohmann::json results = nlohmann::json::array();

/// The time that opening a copy of the pool takes, in microseconds.
template <class PoolType>
std::uint64_t time_of_opening(const std::string& made, const std::string& path,
                              const Options& options) {
  std::filesystem::copy_file(made, path);
  const auto start = std::chrono::steady_clock::now();
  { auto pool = PoolType::open(path, options); }
  const auto took = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(took).count());
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

template <class Pair>
void kill_openings() {
  using Pool2 = test::PoolAfter<Pair>;
  const medium::testing::Scratch scratch;
  const std::string made = scratch.path("made"), path = scratch.path("pool");
  Options options;
  options.creation.max_size = 1 << 30;
  options.creation.log_size = 16 << 20;
  {
    auto pool = test::PoolBefore<Pair>::open(made, options);
    test::fill<Pair>(pool, settings.rows);
    pool.close();
  }
  options.migrate.steps = Pair::steps();
  options.migrate.batch = 200;
  medium::Random dice(settings.seed);
  // Set by a child when it has done the first batch of its work. That work follows the switch,
  // except the copying of objects behind pointers, which the switch follows.
  auto* const at_work = static_cast<std::atomic<bool>*>(::mmap(nullptr, sizeof(std::atomic<bool>),
                                                               PROT_READ | PROT_WRITE,
                                                               MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(at_work), MAP_FAILED);
  options.migrate.progress = [&](const std::string&, std::uint64_t) { *at_work = true; };
  std::uint64_t killed = 0, finished = 0, in_the_work = 0;
  std::uint64_t before_the_switch = 0, after_the_switch = 0;  // as version 1 found the pool
  const std::uint64_t longest_us = time_of_opening<Pool2>(made, path, options);
  while (killed < settings.kills) {
    std::filesystem::copy_file(made, path, std::filesystem::copy_options::overwrite_existing);
    for (bool open = true; open;) {
      *at_work = false;
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) ::_exit(Pool2::try_open(path, options).ok() ? 0 : 1);
      const bool let = killed >= settings.kills || dice() % 8 == 0;  // otherwise none might finish
      if (!let) {
        // A busy machine takes longer than the first opening did: every other kill is one at work.
        if (killed % 2 == 0) test::comes([&] { return at_work->load() || has_ended(child); });
        std::this_thread::sleep_for(std::chrono::microseconds(dice() % longest_us));
        ::kill(child, SIGKILL);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (WIFSIGNALED(status)) {
        ++killed;
        in_the_work += *at_work ? 1 : 0;
        // Version 1 may go on before the switch, and is refused after it.
        if (dice() % 4 != 0) continue;
        Options first = options;
        first.migrate = {};
        auto pool = test::PoolBefore<Pair>::try_open(path, first);
        if (pool.ok()) {
          ++before_the_switch;
          ASSERT_EQ(pool->view([&](auto& tx, const typename Pair::Before& r) {
            return Pair::problem(tx, r, settings.rows);
          }),
                    "")
              << "after " << killed << " kills";
          ASSERT_TRUE(pool->check().ok()) << "after " << killed << " kills";
        } else {
          ++after_the_switch;
          ASSERT_EQ(pool.status().code(), Code::incompatible) << pool.status().message();
        }
        continue;
      }
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "after " << killed << " kills";
      ++finished;
      open = false;
    }
    auto pool = Pool2::open(path, options);
    ASSERT_EQ(test::problem<Pair>(pool, settings.rows), "") << "after " << killed << " kills";
    if (!settings.json)
      std::printf("  %s: %llu of %llu kills\n", Pair::name, static_cast<unsigned long long>(killed),
                  static_cast<unsigned long long>(settings.kills));
    std::fflush(stdout);
  }
  ::munmap(at_work, sizeof *at_work);
  EXPECT_GT(in_the_work, 0U) << "no opening was killed after its first batch";
  results.push_back({{"migration", Pair::name},
                     {"rows", settings.rows},
                     {"killed", killed},
                     {"killed_at_work", in_the_work},
                     {"version_1_went_on", before_the_switch},
                     {"version_1_was_refused", after_the_switch},
                     {"finished", finished},
                     {"seed", settings.seed}});
}

TEST(KilledMigrations, OfFieldsAndIndexes) { kill_openings<test::Evolved>(); }
TEST(KilledMigrations, OfRebuiltContainers) { kill_openings<test::Rebuilt>(); }
TEST(KilledMigrations, OfStructsBehindPointers) { kill_openings<test::Linked>(); }

int run(int argc, char** argv) {
  CLI::App app{
      "Kills processes that open a pool as version 2 of a program, at random instants, opens the "
      "pool again, and compares its contents. --gtest_filter chooses a migration.",
      "killed_migrations_test"};
  app.add_option("--kills", settings.kills, "how many openings of each migration are killed")
      ->check(CLI::PositiveNumber)
      ->take_last()
      ->capture_default_str();
  app.add_option("--rows", settings.rows, "elements of each container of the pool")
      ->check(CLI::PositiveNumber)
      ->take_last()
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "of the instants")->take_last()->capture_default_str();
  app.add_flag("--json", settings.json, "print one JSON document at the end");
  app.allow_extras();  // GoogleTest's
  CLI11_PARSE(app, argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  for (const std::string& extra : app.remaining()) {
    if (extra.starts_with("--gtest_")) continue;
    std::fprintf(stderr, "killed_migrations_test: found '%s', expected an option of --help\n",
                 extra.c_str());
    return 2;
  }
  if (settings.json) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  const int status = RUN_ALL_TESTS();
  if (settings.json)
    std::printf("%s\n",
                nlohmann::json{{"passed", status == 0}, {"migrations", results}}.dump(2).c_str());
  return status;
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) { return perdure::run(argc, argv); }
