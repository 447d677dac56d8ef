// SPDX-License-Identifier: BSD-3-Clause
//
// perdure::tx and perdure::rtx: functions on transactions that another source defines
// (named_tx_helpers.cpp), on every engine of the product; and what a pool whose engine is chosen at
// opening does as one whose engine is compiled in does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "tests/api/named_tx.hpp"

namespace perdure::test {
namespace {

using TestPool = Pool<Shop>;

static_assert(std::is_same_v<TestPool, Pool<Shop, engines<any_engine>>>);
static_assert(std::is_base_of_v<rtx, tx>, "a function that only reads serves updates, too");

class NamedTx : public testing::Test {
 protected:
  NamedTx() { std::filesystem::remove(path_); }
  ~NamedTx() override { std::filesystem::remove(path_); }
  Options options(const std::string& engine = {}) const {
    Options o;
    o.creation.max_size = 64 << 20;
    o.creation.log_size = 4 << 20;
    o.medium = "emulated";
    o.engine = engine;
    return o;
  }
  TestPool open(const std::string& engine = {}) { return TestPool::open(path_, options(engine)); }
  std::string path_ = testing::TempDir() + "named-" + std::to_string(::getpid()) + ".pool";
};

TEST_F(NamedTx, FunctionsOfAnotherSourceRunOnEveryEngine) {
  std::size_t ran = 0;
  for (const engine::EngineInfo& e : engine::registered()) {
    if (!e.runs_here().ok()) continue;
    SCOPED_TRACE(std::string(e.name));
    std::filesystem::remove(path_);
    auto pool = open(std::string(e.name));
    EXPECT_EQ(pool.engine_name(), e.name);
    for (std::uint64_t n = 1; n <= 10; ++n)
      pool.update([n](tx& tx, Shop& shop) { deliver(tx, shop, n % 2 == 0 ? "pears" : "figs", n); });
    EXPECT_EQ(pool.view([](rtx& tx, const Shop& shop) { return total(tx, shop); }), 55U);
    // `auto& tx` is the same type, and an update's transaction reads as a view's does.
    EXPECT_EQ(pool.update([](auto& tx, Shop& shop) {
                    deliver(tx, shop, "plums", 11);
                    return total(tx, shop) + total_of_list(tx, shop);
                  })
                  .value(),
              132U);
    EXPECT_EQ(pool.view(durable, [](auto& tx, const Shop& shop) { return name_of(tx, shop); }),
              "the shop of plums");
    EXPECT_EQ(pool.update([](tx& tx, Shop& shop) { return take_first(tx, shop); }).value(), 11U);
    EXPECT_TRUE(pool.check().ok());
    ++ran;
  }
  EXPECT_GE(ran, 8U);
}

TEST_F(NamedTx, AFunctionThatThrowsRollsItsTransactionBack) {
  auto pool = open();
  pool.update([](tx& tx, Shop& shop) { deliver(tx, shop, "figs", 5); });
  EXPECT_THROW(pool.update([](tx& tx, Shop& shop) {
    deliver(tx, shop, "figs", 7);
    throw std::runtime_error("after the delivery");
  }),
               std::runtime_error);
  EXPECT_THROW(pool.update([](tx& tx, Shop& shop) {
    deliver(tx, shop, "figs", 7);
    perdure::abort(tx);
  }),
               aborted);
  EXPECT_THROW(pool.view([](rtx& tx, const Shop& shop) {
    if (total(tx, shop) == 5) throw std::runtime_error("in a view");
  }),
               std::runtime_error);
  // The view that threw has ended: an update and another view run.
  EXPECT_EQ(pool.update([](tx& tx, Shop& shop) { return take_first(tx, shop); }).value(), 5U);
  EXPECT_EQ(pool.view([](rtx& tx, const Shop& shop) { return total_of_list(tx, shop); }), 0U);
}

TEST_F(NamedTx, NestedCallsJoinTheOuterTransaction) {
  auto pool = open();
  const auto outer = pool.update([&](tx& tx, Shop& shop) {
    deliver(tx, shop, "figs", 1);
    const auto inner = pool.update([](perdure::tx& again, Shop& same) {
      deliver(again, same, "figs", 2);
      return total_of_list(again, same);
    });
    EXPECT_EQ(inner.value(), 3U);
    EXPECT_EQ(inner.try_wait().code(), Code::invalid);
    deliver(tx, shop, "figs", 3);
    return pool.view([](rtx& again, const Shop& same) { return total(again, same); });
  });
  EXPECT_EQ(outer.value(), 6U);
  EXPECT_TRUE(outer.durable());
  EXPECT_EQ(pool.view([&](rtx&, const Shop&) {
    EXPECT_EQ(pool.try_update([](tx& tx, Shop& shop) { deliver(tx, shop, "figs", 4); }).code(),
              Code::invalid);
    return pool.view([](rtx& tx, const Shop& shop) { return total_of_list(tx, shop); });
  }),
            6U);
}

TEST_F(NamedTx, ACheckedViewIsAnRtx) {
  {
    auto pool = open();
    pool.update([](tx& tx, Shop& shop) { deliver(tx, shop, "figs", 5); });
    EXPECT_EQ(pool.checked_view([](rtx& tx, const Shop& shop) { return total_of_list(tx, shop); }),
              5U);
  }
  auto compiled = Pool<Shop, engines<shadow>>::open(path_, options());
  EXPECT_EQ(
      compiled.checked_view([](rtx& tx, const Shop& shop) { return total_of_list(tx, shop); }), 5U);
  // A pointer out of the pool is found before it is followed.
  static Node outside{};
  compiled.update([](auto& tx, Shop& shop) { tx(shop.head) = &outside; });
  try {
    (void)compiled.checked_view([](rtx& tx, const Shop& shop) { return total_of_list(tx, shop); });
    FAIL() << "no exception";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::corrupt);
  }
  EXPECT_FALSE(compiled.check().ok());
  compiled.update([](auto& tx, Shop& shop) { tx(shop.head) = nullptr; });
}

TEST_F(NamedTx, TheCallersIsolationIsAnOption) {
  Options o = options();
  o.isolation = Isolation::caller;
  {
    auto pool = TestPool::open(path_, o);
    EXPECT_EQ(pool.engine_name(), "shadow/none");
    pool.update([](tx& tx, Shop& shop) { deliver(tx, shop, "figs", 5); });
  }
  auto pool = open();
  EXPECT_EQ(pool.engine_name(), "shadow");
  EXPECT_EQ(pool.view([](rtx& tx, const Shop& shop) { return total(tx, shop); }), 5U);
}

TEST_F(NamedTx, ThreadsSeeWholeTransactions) {
  auto pool = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&pool, t] {
      for (std::uint64_t n = 0; n < 200; ++n) {
        pool.update([t](tx& tx, Shop& shop) { deliver(tx, shop, t == 0 ? "figs" : "nuts", 1); });
        pool.view(
            [](rtx& tx, const Shop& shop) { EXPECT_EQ(total(tx, shop), total_of_list(tx, shop)); });
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(pool.view([](rtx& tx, const Shop& shop) { return total(tx, shop); }), 600U);
}

}  // namespace
}  // namespace perdure::test
