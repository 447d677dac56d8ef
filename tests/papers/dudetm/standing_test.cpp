// SPDX-License-Identifier: BSD-3-Clause
//
// DudetmOptions::standing_threads: Persist and Reproduce in a thread each. What is durable is there
// after a kill, pages are evicted beside them, and they come to rest.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "papers/dudetm/options.hpp"
#include "perdure/perdure.hpp"
#include "tests/medium/scratch.hpp"
#include "tests/support/comes.hpp"

namespace perdure::test {
namespace {

using medium::testing::Scratch;

constexpr std::size_t words = 16 << 10;  // 32 pages
struct Root {
  std::array<p<std::uint64_t>, words> word;
  p<std::uint64_t> count;
};

struct Setting {
  const char* engine;
  papers::DudetmOptions own;
};

class Standing : public ::testing::TestWithParam<Setting> {
 protected:
  [[nodiscard]] Options options() const {
    Options o;
    o.engine = GetParam().engine;
    o.medium = "emulated";
    o.durability = Durability::async;
    o.creation.max_size = 64 << 20;
    o.creation.log_size = 1 << 20;
    papers::DudetmOptions own = GetParam().own;
    own.standing_threads = true;
    o.engine_options = own;
    return o;
  }
  const Scratch scratch{"/dev/shm"};
};

// Stores n to a word and to the count.
template <class P>
auto step(P& pool, std::uint64_t n) {
  return pool.update([n](auto& tx, Root& r) {
    tx(r.word[n * 977 % words]) = n;
    tx(r.count) = n;
  });
}

TEST_P(Standing, PersistAndReproduceWhatNobodyWaitsForAndRest) {
  auto pool = Pool<Root>::open(scratch.path(), options());
  for (std::uint64_t n = 1; n <= 20'000; ++n) (void)step(pool, n);
  const std::uint64_t last = pool.stats().last_id;
  EXPECT_TRUE(comes([&] { return pool.durable_id() >= last; }));
  EXPECT_TRUE(comes([&] { return pool.stats().checkpoint_id >= last; }));
  // Asleep, they are not waked: the process is given no processor for them.
  const auto switches = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  EXPECT_TRUE(comes([&] {
    const long before = switches();
    ::usleep(100'000);
    return switches() - before <= 2;  // this one's sleep
  }));
  // They wake up again.
  (void)step(pool, 20'001);
  EXPECT_TRUE(comes([&] { return pool.durable_id() >= pool.stats().last_id; }));
}

TEST_P(Standing, LoseNothingThatWasDurable) {
  for (int round = 0; round < 4; ++round) {
    int ends[2];
    ASSERT_EQ(0, ::pipe(ends));
    const pid_t child = ::fork();
    ASSERT_NE(-1, child);
    if (child == 0) {
      auto pool = Pool<Root>::open(scratch.path(), options());
      std::uint64_t n = pool.view([](auto& tx, const Root& r) { return tx.read(r.count); });
      for (std::uint64_t told = n;;) {
        ++n;
        const std::uint64_t before = step(pool, n).id() - n;  // ids and numbers rise together
        const std::uint64_t durable = std::min(pool.durable_id() - before, n);
        if (n % 64 != 0 || durable <= told) continue;
        told = durable;
        if (::write(ends[1], &told, sizeof told) != sizeof told) ::_exit(1);
      }
    }
    ::close(ends[1]);
    std::uint64_t durable = 0;
    for (std::uint64_t read = 0, i = 0; i < 200; ++i) {
      ASSERT_EQ(static_cast<ssize_t>(sizeof read), ::read(ends[0], &read, sizeof read));
      durable = read;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    auto pool = Pool<Root>::open(scratch.path(), options());
    // A prefix: each word has the last number up to the count that was stored to it.
    const std::uint64_t count = pool.view([](auto& tx, const Root& r) {
      const std::uint64_t last = tx.read(r.count);
      for (std::uint64_t n = last; n > 0 && n + 2000 > last; --n)
        if (tx.read(r.word[n * 977 % words]) != n) return std::uint64_t{0};
      return last;
    });
    EXPECT_GE(count, durable);
    EXPECT_TRUE(pool.check().problems.empty());
  }
}

TEST_P(Standing, ServeSeveralThreads) {
  {
    auto pool = Pool<Root>::open(scratch.path(), options());
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 3; ++t)
      threads.emplace_back([&pool, t] {
        for (std::uint64_t i = 0; i < 3000; ++i) {
          auto receipt = pool.update([&](auto& tx, Root& r) {
            tx(r.word[(i * 577 + t) % words]) += 1;
            tx(r.count) += 1;
          });
          if (i % 500 == 0) receipt.wait();
        }
      });
    for (auto& t : threads) t.join();
  }
  auto again = Pool<Root>::open(scratch.path(), options());
  again.view([](auto& tx, const Root& r) {
    std::uint64_t sum = 0;
    for (const auto& w : r.word) sum += tx.read(w);
    EXPECT_EQ(9000U, sum);
    EXPECT_EQ(9000U, tx.read(r.count));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Standing,
    ::testing::Values(
        Setting{"dudetm", {}}, Setting{"dudetm-inf", {}}, Setting{"dudetm-combined", {}},
        Setting{"dudetm", {.volatile_log = 4096}},
        Setting{"dudetm", {.shadow_size = 64 << 10, .shadow_paging = ShadowPaging::hardware}},
        Setting{"dudetm", {.shadow_size = 64 << 10, .shadow_paging = ShadowPaging::software}}),
    [](const auto& of) {
      std::string name = std::to_string(of.index) + "_" + of.param.engine;
      for (char& c : name)
        if (c == '-') c = '_';
      return name;
    });

}  // namespace
}  // namespace perdure::test
