// SPDX-License-Identifier: BSD-3-Clause
//
// The notifications of Options::recovery.progress: a beginning and an end from every engine,
// nothing for a pool that was closed in order; for a long log on slow memory how far it is, stage
// by stage, never decreasing. Also: recovery by several threads gives the same result as by one.
#include <filesystem>

#include "tests/engine/suite.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure::test {
namespace {

using medium::testing::Scratch;
using Stage = RecoveryProgress::Stage;

struct Root {
  std::array<p<std::uint64_t>, 64> word;
  ptr<p<std::uint64_t>> array;
};
constexpr std::uint64_t array_words = 1 << 16;

void expect_in_order(const std::vector<RecoveryProgress>& told, const Recovery& recovery) {
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(Stage::read, told.front().stage);
  EXPECT_EQ(0U, told.front().done);
  EXPECT_EQ(Stage::apply, told.back().stage);
  EXPECT_EQ(recovery.bytes, told.back().total);
  EXPECT_EQ(told.back().total, told.back().done);
  for (std::size_t i = 1; i < told.size(); ++i) {
    EXPECT_LE(told[i].done, told[i].total);
    EXPECT_LE(told[i - 1].stage, told[i].stage);
    if (told[i - 1].stage != told[i].stage) continue;
    EXPECT_LE(told[i - 1].done, told[i].done);
    EXPECT_EQ(told[i - 1].total, told[i].total);
  }
}

class RecoveryIsTold : public EngineTest {};
std::vector<EngineInfo> durable_engines() {
  return engines_that([](const EngineInfo& e) { return e.family != "volatile"; });
}
ENGINE_SUITE(RecoveryIsTold, durable_engines);

TEST_P(RecoveryIsTold, FromItsBeginningToItsEndAndNotWhenThePoolIsClean) {
  const Scratch scratch("/dev/shm");
  std::vector<RecoveryProgress> told;
  Options options;
  options.engine = GetParam().name;
  options.isolation = GetParam().isolation;
  options.medium = "emulated";
  options.creation.max_size = 64 << 20;
  options.creation.log_size = 4 << 20;
  options.recovery.progress = [&](const RecoveryProgress& p) { told.push_back(p); };
  {
    auto pool = AnyPool<Root>::open(scratch.path(), options);
    for (std::uint64_t n = 1; n <= 20; ++n)
      pool.update([n](auto& tx, Root& r) { tx(r.word[n % 64]) = n; }).wait();
    std::filesystem::copy_file(scratch.path(), scratch.path("copy"));  // as after a kill
  }
  EXPECT_TRUE(told.empty()) << "a new pool";
  {
    auto pool = AnyPool<Root>::open(scratch.path("copy"), options);
    pool.view([](auto& tx, const Root& r) { EXPECT_EQ(20U, tx(r.word[20])); });
    expect_in_order(told, pool.stats().recovery);
  }
  told.clear();
  AnyPool<Root>::open(scratch.path("copy"), options);
  EXPECT_TRUE(told.empty()) << "closed in order";
}

Options long_log() {
  Options o;
  o.engine = "shadow";
  o.medium = "emulated";
  o.durability = async;
  o.creation.max_size = 64 << 20;
  o.creation.log_size = 16 << 20;
  return o;
}

// A pool with a log of a few MiB, as a kill leaves it.
void make_long_log(const std::string& path, const std::string& copy) {
  auto pool = AnyPool<Root>::open(path, long_log());
  pool.update([](auto& tx, Root& r) {
        tx(r.array) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(array_words * 8));
      })
      .wait();
  std::mt19937_64 random(1);
  std::uint64_t values[64];
  for (std::uint64_t n = 1; n <= 4000; ++n) {
    for (auto& v : values) v = random();
    const std::uint64_t runs[2] = {random() % (array_words - 64), random() % array_words};
    auto receipt = pool.update([&](auto& tx, Root& r) {
      p<std::uint64_t>* const array = tx.read(r.array);
      tx.write_bytes(array + runs[0], values, sizeof values);
      tx(array[runs[1]]) = n;
      if (n % 50 == 0) tx.free(tx.alloc(n % 3000));
    });
    if (n == 4000) receipt.wait();
  }
  std::filesystem::copy_file(path, copy);
}

TEST(RecoveryOfALongLog, IsToldOnTheWay) {
  const Scratch scratch("/dev/shm");
  make_long_log(scratch.path(), scratch.path("copy"));
  std::vector<RecoveryProgress> told;
  std::vector<std::thread::id> who;
  Options options = long_log();
  options.medium_options.delays.write_ns = 5000;
  options.recovery.threads = 2;
  options.recovery.progress = [&](const RecoveryProgress& p) {
    told.push_back(p);
    who.push_back(std::this_thread::get_id());
  };
  auto pool = AnyPool<Root>::open(scratch.path("copy"), options);
  EXPECT_GT(pool.stats().recovery.bytes, std::uint64_t{2} << 20);
  expect_in_order(told, pool.stats().recovery);
  EXPECT_GT(told.size(), 2U) << "it took " << pool.stats().recovery.seconds << " s";
  for (const auto& id : who) EXPECT_EQ(std::this_thread::get_id(), id);
}

TEST(RecoveryOfALongLog, ComesToTheSameByAnyNumberOfThreads) {
  const Scratch scratch("/dev/shm");
  make_long_log(scratch.path(), scratch.path("copy"));
  std::vector<std::uint64_t> first;
  for (const unsigned threads : {1U, 2U, 5U, 8U}) {
    std::filesystem::copy_file(scratch.path("copy"), scratch.path("again"),
                               std::filesystem::copy_options::overwrite_existing);
    Options options = long_log();
    options.recovery.threads = threads;
    auto pool = AnyPool<Root>::open(scratch.path("again"), options);
    std::vector<std::uint64_t> found;
    pool.view([&](auto& tx, const Root& r) {
      const p<std::uint64_t>* const array = tx.read(r.array);
      for (std::uint64_t i = 0; i < array_words; ++i) found.push_back(tx.read(array[i]));
    });
    if (first.empty()) first = found;
    EXPECT_EQ(first, found) << threads;
    EXPECT_TRUE(pool.check().problems.empty()) << threads;
  }
  Options options = long_log();
  options.recovery.threads = 9;
  EXPECT_EQ(Code::invalid, AnyPool<Root>::try_open(scratch.path("copy"), options).code());
}

}  // namespace
}  // namespace perdure::test
