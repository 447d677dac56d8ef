// SPDX-License-Identifier: BSD-3-Clause
//
// ShadowOptions::helper: which thread makes a checkpoint on memory, what it leaves of the thread
// with the bias, and when the pool has no thread of its own at all.
#include "perdure/engine/shadow/helper.hpp"
#include "perdure/api/compiled_pool.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "perdure/engine/shadow/instances.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"
#include "tests/support/comes.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;
using namespace std::chrono_literals;
using Use = ShadowOptions::Helper;

constexpr std::uint64_t ring = 2 << 20, words = 1 << 16;

struct Root {
  std::array<p<std::uint64_t>, words> word;
};
template <class Engine = shadow>
using TestPool = Pool<Root, engines<Engine>>;

Options options(Use use, std::uint64_t ring_bytes = ring) {
  Options o;
  o.medium = "emulated";
  o.creation.max_size = 64 << 20;
  o.creation.threads = 2;
  o.creation.log_size = 2 * ring_bytes;
  o.engine_options = ShadowOptions{.helper = use};
  return o;
}

template <class Pool>
void add(Pool& pool, std::uint64_t from, std::uint64_t step) {
  pool.update([&](auto& tx, Root& r) {
    for (std::uint64_t i = 0; i < 64; ++i) {
      auto& word = r.word[(from + i * step) % words];
      tx(word) = tx.read(word) + 1;
    }
  });
}
std::size_t threads_here() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator("/proc/self/task")) ++n;
  return n;
}

template <class Engine>
class HelperTest : public ::testing::Test {
 protected:
  Scratch scratch_;
  std::string path_ = scratch_.path();
};
using Helped = ::testing::Types<shadow, shadow_stm>;
TYPED_TEST_SUITE(HelperTest, Helped);

// The committing thread stops at half a log: all of the checkpoint is the helper's.
TYPED_TEST(HelperTest, MakesTheCheckpointOfALogThatIsHalfFull) {
  {
    auto pool = TestPool<TypeParam>::open(this->path_, options(Use::on));
    for (std::uint64_t n = 1; n <= 3; ++n) {
      for (Stats now = pool.stats(); now.log_used < ring / 2 && now.checkpoints < n;
           now = pool.stats())
        add(pool, n * 7, 977);
      ASSERT_TRUE(comes([&] { return pool.stats().helped_checkpoints == n; }))
          << pool.stats().helped_checkpoints << " of " << pool.stats().checkpoints;
      EXPECT_EQ(n, pool.stats().checkpoints);
      const Stats stats = pool.stats();
      EXPECT_LT(stats.log_used, ring / 4)
          << n << ", checkpoint id " << stats.checkpoint_id << " of " << stats.last_id;
    }
    EXPECT_EQ(0U, pool.stats().bias_revocations);
    pool.close();
  }
  auto pool = TestPool<TypeParam>::open(this->path_, options(Use::off));
  EXPECT_TRUE(pool.check().ok());
}

TYPED_TEST(HelperTest, AKillBesideItLosesNothing) {
  std::vector<std::uint64_t> model(words);
  const std::string copy = this->scratch_.path("copy");
  {
    auto pool = TestPool<TypeParam>::open(this->path_, options(Use::on));
    for (std::uint64_t i = 0; pool.stats().checkpoints < 20 / scale; ++i) {
      add(pool, i * 7, 977);
      for (std::uint64_t k = 0; k < 64; ++k) ++model[(i * 7 + k * 977) % words];
    }
    EXPECT_EQ(0U, pool.stats().bias_revocations);
    std::filesystem::copy_file(this->path_, copy);
    pool.close();
  }
  auto again = TestPool<TypeParam>::open(copy, options(Use::off));
  EXPECT_FALSE(again.stats().recovery.was_clean);
  const std::uint64_t wrong = again.view([&](auto& tx, const Root& r) {
    std::uint64_t n = 0;
    for (std::uint64_t w = 0; w < words; ++w) n += tx.read(r.word[w]) != model[w] ? 1 : 0;
    return n;
  });
  EXPECT_EQ(0U, wrong);
}

TYPED_TEST(HelperTest, SwitchedOffThePoolHasNoThread) {
  const std::size_t before = threads_here();
  auto pool = TestPool<TypeParam>::open(this->path_, options(Use::off));
  while (pool.stats().checkpoints < 2) add(pool, 0, 977);
  EXPECT_GE(before, threads_here());
  EXPECT_EQ(0U, pool.stats().helped_checkpoints);
}

TYPED_TEST(HelperTest, ASmallLogHasNoneUnlessToldTo) {
  const std::size_t before = threads_here();
  auto pool = TestPool<TypeParam>::open(this->path_, options(Use::automatic, 64 << 10));
  while (pool.stats().checkpoints < 4) add(pool, 0, 977);
  EXPECT_GE(before, threads_here());
}

TYPED_TEST(HelperTest, WithALimitOfMemoryThereIsNone) {
  const std::size_t before = threads_here();
  Options o = options(Use::on);
  o.max_resident = 1 << 20;
  auto pool = TestPool<TypeParam>::open(this->path_, o);
  while (pool.stats().checkpoints < 2) add(pool, 0, 977);
  EXPECT_GE(before, threads_here());
}

// Its automatic choice is one or the other; whichever it is, checkpoints are made.
TYPED_TEST(HelperTest, ByMeasurementCheckpointsAreMadeToo) {
  auto pool = TestPool<TypeParam>::open(this->path_, options(Use::automatic));
  while (pool.stats().checkpoints < 40 / scale) add(pool, 0, 977);
  const Stats stats = pool.stats();
  EXPECT_LE(stats.helped_checkpoints, stats.checkpoints);
  this->RecordProperty("helped", static_cast<int>(stats.helped_checkpoints));
}

// A second thread takes the bias away while the helper may be copying beside it.
TYPED_TEST(HelperTest, TwoThreadsLoseNothing) {
  constexpr std::uint64_t rounds = 20 / scale;
  auto pool = TestPool<TypeParam>::open(this->path_, options(Use::on));
  std::uint64_t sum = 0;
  for (std::uint64_t n = 0; n < rounds; ++n) {
    std::thread other([&] {
      for (int i = 0; i < 300; ++i) add(pool, 1, 1009);
    });
    for (int i = 0; i < 3000 / (1 + static_cast<int>(n % 3)); ++i) add(pool, 0, 977), ++sum;
    other.join();
    sum += 300;
  }
  const std::uint64_t found = pool.view([](auto& tx, const Root& r) {
    std::uint64_t n = 0;
    for (const auto& w : r.word) n += tx.read(w);
    return n;
  });
  EXPECT_EQ(sum * 64, found);
  EXPECT_GT(pool.stats().checkpoints, 0U);
}

TEST(Helper, WithoutIsolationThereIsNone) {
  const Scratch scratch;
  const std::size_t before = threads_here();
  Options o = options(Use::on);
  o.isolation = Isolation::caller;
  auto pool = TestPool<shadow_none>::open(scratch.path(), o);
  while (pool.stats().checkpoints < 2) add(pool, 0, 977);
  EXPECT_GE(before, threads_here());
}

TEST(Helper, AValueThatIsNoneIsRefused) {
  const Scratch scratch;
  const auto pool = TestPool<>::try_open(scratch.path(), options(static_cast<Use>(9)));
  ASSERT_FALSE(pool);
  EXPECT_EQ(Code::invalid, pool.status().code());
  EXPECT_THAT(pool.status().message(), ::testing::HasSubstr("ShadowOptions::helper 9"));
}

using engine::shadow::Helper;
std::chrono::nanoseconds said{0};
std::optional<std::chrono::nanoseconds> says() noexcept { return said; }
std::optional<std::chrono::nanoseconds> says_nothing() noexcept { return {}; }
void help(Helper& helper, std::chrono::nanoseconds waits, bool works = true) {
  helper.ask();
  EXPECT_TRUE(helper.asked());
  helper.begin();
  EXPECT_FALSE(helper.asked());
  said += waits;
  helper.end(works, works);
}

TEST(Helper, ThatHadToWaitRestsForFifteenCheckpoints) {
  Helper helper(Use::automatic, says);
  if (!helper.wanted()) GTEST_SKIP() << "one processor";
  help(helper, 0s);
  EXPECT_TRUE(helper.wanted());
  help(helper, 1h, false);
  EXPECT_TRUE(helper.wanted()) << "there was nothing to do";
  help(helper, 1h);
  for (int i = 0; i < Helper::rest; ++i) {
    EXPECT_FALSE(helper.wanted());
    helper.one_less_to_rest();
  }
  EXPECT_TRUE(helper.wanted());
  EXPECT_EQ(2U, helper.checkpoints());
}

TEST(Helper, WhoseWaitingIsNotKnownMakesNoMore) {
  Helper helper(Use::automatic, says_nothing);
  help(helper, 0s);
  for (int i = 0; i < 2 * Helper::rest; ++i) helper.one_less_to_rest();
  EXPECT_FALSE(helper.wanted());
}

TEST(Helper, ThatIsOnIsAlwaysWanted) {
  Helper helper(Use::on, says);
  help(helper, 1h);
  EXPECT_TRUE(helper.wanted());
}

}  // namespace
}  // namespace perdure::test
