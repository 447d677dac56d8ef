// SPDX-License-Identifier: BSD-3-Clause
//
// Containers are rebuilt, and the power fails, or the process is killed, at any point of it: each
// element is in the old container or in the new one (REBUILD-1), and the next opening goes on. On
// every engine.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "perdure/perdure.hpp"
#include "testing/crash_medium.hpp"
#include "testing/recording_medium.hpp"
#include "tests/engine/families.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

namespace v1 {
struct User {
  std::uint64_t id = 0;
  std::string name, mail;
};
using Users = table<User, key<&User::id>, indexed<&User::mail>>;
using Logins = hash_map<std::uint64_t, std::string>;
struct Root {
  Users users;
  Logins logins;
  vector<std::uint64_t> counts;
};
}  // namespace v1
namespace v2 {
struct User {
  std::string number, name, mail;
};
using Users = table<User, key<&User::name>, unique<&User::number>, indexed<&User::mail>>;
struct Root {
  rebuilt<Users, v1::Users> users;
  rebuilt<map<std::string, std::string>, v1::Logins> logins;
  rebuilt<vector<std::string>, vector<std::uint64_t>> counts;
};
}  // namespace v2
using Pool1 = Pool<v1::Root, engines<any_engine>>;
using Pool2 = Pool<v2::Root, engines<any_engine>>;

void fill(Pool1& pool, std::uint64_t n) {
  for (std::uint64_t from = 0; from < n; from += 20)
    pool.update([&](auto& tx, v1::Root& r) {
      for (std::uint64_t i = from; i < std::min(n, from + 20); ++i) {
        r.users.insert(tx, {i, "name " + std::to_string(i), "mail " + std::to_string(i % 3)});
        r.logins.put(tx, i, "value");
        r.counts.push_back(tx, i);
      }
    });
}

/// What is wrong with a pool that version 2 has opened.
std::string problem(Pool2& pool, std::uint64_t n) {
  std::string found = pool.view([&](auto& tx, const v2::Root& r) -> std::string {
    if (r.users.size(tx) != n) return std::to_string(r.users.size(tx)) + " rows";
    if (r.logins.size(tx) != n) return std::to_string(r.logins.size(tx)) + " logins";
    if (r.counts.size(tx) != n) return std::to_string(r.counts.size(tx)) + " counts";
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::string number = std::to_string(i);
      const auto row = r.users.find(tx, "name " + number);
      if (!row || row->number != number) return "row " + number + " is wrong";
      if (!r.users.template one<&v2::User::number>(tx, number)) return "row " + number + " is lost";
      if (r.logins.find(tx, number) != "value") return "login " + number + " is wrong";
      if (r.counts.get(tx, i) != number) return "count " + number + " is wrong";
    }
    return {};
  });
  const CheckReport report = pool.check();
  if (found.empty() && !report.ok()) found = "check: " + report.problems.front();
  // Rows with three texts, keys of text in the parts, two texts a login, one a count.
  if (found.empty() && report.blocks > n * 12 + 30)
    found = std::to_string(report.blocks) + " blocks";
  return found;
}

Options options_for(std::string_view engine, Isolation isolation) {
  Options o;
  o.engine = engine;
  o.isolation = isolation;
  o.creation.threads = 1;
  o.creation.uuid_seed = 1;
  o.migrate.steps = {
      step<v1::User, v2::User>("users",
                               [](const auto& a, auto& b) { b.number = std::to_string(a.id); }),
      step<std::pair<std::uint64_t, std::string>, std::pair<std::string, std::string>>(
          "logins", [](const auto& a, auto& b) { b.first = std::to_string(a.first); }),
      step<std::uint64_t, std::string>("counts",
                                       [](const auto& a, auto& b) { b = std::to_string(a); })};
  return o;
}

class RebuiltCrash : public ::testing::TestWithParam<engine::EngineInfo> {};

// What is surely durable at each fence of an opening by version 2, opened by it again.
TEST_P(RebuiltCrash, EachFenceLeavesAPoolThatTheNextOpeningFinishes) {
  constexpr std::uint64_t n = 8;
  Options options = options_for(GetParam().name, GetParam().isolation);
  options.migrate.batch = 3;
  medium::RecordingOptions medium;
  medium.log_bytes = 2 << 20;
  medium.data_bytes = 2 << 20;
  medium.max_data_bytes = 4 << 20;
  std::vector<std::byte> before;
  {
    auto made = medium::RecordingMedium::make(medium).value();
    auto* const raw = made.get();
    Options first = options;
    first.migrate = {};
    auto pool = Pool1::try_open_on("pool", first, std::move(made), true).value();
    fill(pool, n);
    pool.close();
    before = raw->durable_image();
  }
  std::vector<std::vector<std::byte>> images;
  {
    auto made = medium::RecordingMedium::make(medium, before).value();
    auto* const raw = made.get();
    std::uint64_t fences = 0, every = 1;
    raw->set_fence_hooks(
        [&] {
          if (fences++ % every != 0) return;
          images.push_back(raw->durable_image());
          if (images.size() % 6 == 0) every *= 2;  // some engines fence at each store
        },
        [] {});
    auto pool = Pool2::try_open_on("pool", options, std::move(made), false).value();
    EXPECT_EQ(problem(pool, n), "");
    pool.close();
    images.push_back(raw->durable_image());
  }
  ASSERT_GT(images.size(), 4U);
  std::uint64_t finished = 0;
  for (const auto& image : images) {
    auto made = medium::RecordingMedium::make(medium, image).value();
    auto opened = Pool2::try_open_on("pool", options, std::move(made), false);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    if (opened->stats().commits == 0) ++finished;
    ASSERT_EQ(problem(*opened, n), "");
  }
  EXPECT_GT(finished, 0U) << "no image was finished";
  EXPECT_LT(finished, images.size()) << "each image was finished";
}

std::vector<engine::EngineInfo> durable() {
  std::vector<engine::EngineInfo> all;
  for (const engine::EngineInfo& e : engine::registered())
    // Variants of an engine by isolation run the same transactions here.
    if (test::is_durable(e) && e.runs_here().ok() && e.name.find('/') == std::string_view::npos)
      all.push_back(e);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Engines, RebuiltCrash, ::testing::ValuesIn(durable()), [](const auto& i) {
  std::string name(i.param.name);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

/// Kills openings by version 2 at random instants until `kills` were killed.
void kill_openings(std::uint64_t n, unsigned kills, unsigned seed) {
  const medium::testing::Scratch scratch;
  const std::string made = scratch.path("made"), path = scratch.path("pool");
  Options options = options_for("shadow", Isolation::full);
  options.creation.max_size = 1 << 30;
  options.creation.log_size = 16 << 20;
  options.migrate.batch = 200;
  {
    Options first = options;
    first.migrate = {};
    auto pool = Pool1::open(made, first);
    fill(pool, n);
    pool.close();
  }
  medium::Random dice(seed);
  std::uint64_t killed = 0, finished = 0, longest_us = 20'000;
  while (killed < kills) {
    std::filesystem::copy_file(made, path, std::filesystem::copy_options::overwrite_existing);
    for (bool open = true; open;) {
      const auto start = std::chrono::steady_clock::now();
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) ::_exit(Pool2::try_open(path, options).ok() ? 0 : 1);
      const bool let = killed >= kills || dice() % 8 == 0;  // or it would never be finished
      if (!let) {
        std::this_thread::sleep_for(std::chrono::microseconds(dice() % longest_us));
        ::kill(child, SIGKILL);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (WIFSIGNALED(status)) {
        ++killed;
        continue;
      }
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "after " << killed << " kills";
      if (let)
        longest_us = std::max<std::uint64_t>(
            1000, static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                                 std::chrono::steady_clock::now() - start)
                                                 .count()));
      ++finished;
      open = false;
    }
    auto pool = Pool2::open(path, options);
    ASSERT_EQ(problem(pool, n), "") << "after " << killed << " kills";
  }
  std::printf("  %llu openings were killed, %llu finished\n",
              static_cast<unsigned long long>(killed), static_cast<unsigned long long>(finished));
}

TEST(RebuiltKilled, AFewOpenings) { kill_openings(2'000, 20, 1); }
// The named long run: --gtest_also_run_disabled_tests --gtest_filter=*AHundredOpenings*
TEST(RebuiltKilled, DISABLED_AHundredOpeningsOfAHundredThousandRows) {
  kill_openings(100'000, 100, 2);
}

}  // namespace
}  // namespace perdure
