// SPDX-License-Identifier: BSD-3-Clause
//
// Receipts: what they cover, and the receipts of nested, empty and failed updates.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/shadow/instances.hpp"
#include "perdure/perdure.hpp"
#include "testing/recording_medium.hpp"

namespace {

struct Root {
  perdure::p<std::uint64_t> count;
  std::array<perdure::p<std::uint64_t>, 64> apart;
};
using Pool = perdure::Pool<Root, perdure::engines<perdure::any_engine>>;

class Receipts
    : public testing::TestWithParam<std::tuple<const char*, const char*, perdure::Durability>> {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    const auto& [engine, medium, durability] = GetParam();
    perdure::Options options;
    options.engine = engine;
    options.medium = medium;
    options.durability = durability;
    options.creation.max_size = 64 << 20;
    options.creation.log_size = 1 << 20;
    pool_.emplace(Pool::open(path_, options));
  }
  void TearDown() override {
    pool_.reset();
    std::filesystem::remove(path_);
  }
  [[nodiscard]] auto add(perdure::Durability durability) {
    return pool_->update(durability, [](auto& tx, Root& root) { return tx(root.count) += 1; });
  }
  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("receipt-" + std::to_string(getpid()) + ".pool");
  std::optional<Pool> pool_;
};

TEST_P(Receipts, AnEmptyUpdateOfAFreshPoolIsDurable) {
  const auto receipt = pool_->update([](auto&, Root&) {});
  EXPECT_EQ(receipt.id(), 0U);
  EXPECT_TRUE(receipt.durable());
  EXPECT_TRUE(receipt.try_wait().ok());
  pool_->view(perdure::durable, [](auto& tx, const Root& root) { return tx(root.count); });
}

TEST_P(Receipts, IdsRiseAndWaitMakesDurable) {
  std::uint64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    const auto receipt = add(perdure::async);
    EXPECT_GT(receipt.id(), last);
    last = receipt.id();
    if (i % 10 == 0) {
      receipt.wait();
      EXPECT_TRUE(receipt.durable());
    }
  }
  const auto empty = pool_->update([](auto& tx, Root& root) { return tx.read(root.count); });
  EXPECT_GE(empty.id(), last) << "it read what transaction " << last << " wrote";
  empty.wait();
  EXPECT_GE(pool_->durable_id(), last);
  EXPECT_TRUE(add(perdure::durable).durable());
  EXPECT_TRUE(add(perdure::group).durable());
}

TEST_P(Receipts, ANestedUpdateHasNoReceiptOfItsOwn) {
  std::optional<perdure::Receipt<std::uint64_t>> inner;
  const auto outer = pool_->update([&](auto&, Root&) { inner.emplace(add(perdure::durable)); });
  outer.wait();
  EXPECT_EQ(inner->id(), 0U);
  EXPECT_EQ(inner->value(), 1U);
  EXPECT_FALSE(inner->durable());
  EXPECT_EQ(inner->try_wait().code(), perdure::Code::invalid);
  perdure::Code told = perdure::Code::ok;
  inner->then([](auto task) { task(); },
              [&](const perdure::Status& status) { told = status.code(); });
  EXPECT_EQ(told, perdure::Code::invalid);
}

struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

TEST_P(Receipts, ThenAndAwaitResumeWhenDurable) {
  constexpr int n = 200;
  std::latch done(2 * n);
  std::atomic<std::uint64_t> sum{0}, late{0};
  const auto serve = [&]() -> Detached {
    auto receipt = add(perdure::async);
    const std::uint64_t id = receipt.id();
    sum += co_await receipt;
    if (pool_->durable_id() < id) ++late;
    done.count_down();
  };
  for (int i = 0; i < n; ++i) {
    serve();
    const auto receipt = add(perdure::async);
    receipt.then([](auto task) { task(); },
                 [&, id = receipt.id()](const perdure::Status& status) {
                   if (!status.ok() || pool_->durable_id() < id) ++late;
                   done.count_down();
                 });
  }
  done.wait();
  EXPECT_EQ(late, 0U);
  EXPECT_EQ(sum, static_cast<std::uint64_t>(n) * n);  // 1 + 3 + 5 + ...
}

// While one thread hangs in its fence, another one, which drew a later id, commits: its record is
// durable whatever happens to the first one's.
template <class Instance>
void later_id_is_durable_first() {
  perdure::medium::RecordingOptions how;
  how.log_bytes = 4 << 20;
  how.data_bytes = 4 << 20;
  auto made = perdure::medium::RecordingMedium::make(how);
  ASSERT_TRUE(made.ok());
  perdure::medium::RecordingMedium& medium = **made;
  auto opened = perdure::Pool<Root, perdure::engines<Instance>>::try_open_on(
      "recording", {}, std::move(*made), true);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  auto& pool = *opened;
  static thread_local bool hangs = false;
  std::latch inside(1), go_on(1);
  medium.set_fence_hooks(
      [&] {
        if (!hangs) return;
        inside.count_down();
        go_on.wait();
      },
      {});
  std::thread first([&] {
    pool.update([](auto& tx, Root& root) {
      tx(root.apart[0]) += 1;
      hangs = true;
    });
    hangs = false;
  });
  inside.wait();
  const auto receipt =
      pool.update(perdure::durable, [](auto& tx, Root& root) { tx(root.apart[32]) += 1; });
  EXPECT_TRUE(receipt.durable());
  bool told = false;
  receipt.then([](auto task) { task(); },
               [&](const perdure::Status& status) { told = status.ok(); });
  EXPECT_TRUE(told) << "known already: no thread has to tell";
  go_on.count_down();
  first.join();
}
TEST(HeldReceipts, ALaterIdIsDurableFirst) { later_id_is_durable_first<perdure::shadow_stm>(); }

TEST_P(Receipts, StayValidAfterClose) {
  const auto receipt = add(perdure::async);
  pool_->close();
  EXPECT_TRUE(receipt.durable());
  EXPECT_TRUE(receipt.try_wait().ok());
}

INSTANTIATE_TEST_SUITE_P(Engines, Receipts,
                         testing::Values(std::tuple("shadow", "emulated", perdure::durable),
                                         std::tuple("shadow", "emulated", perdure::group),
                                         std::tuple("shadow", "file", perdure::durable),
                                         std::tuple("dudetm", "emulated", perdure::durable),
                                         std::tuple("dudetm", "file", perdure::async),
                                         std::tuple("undo", "emulated", perdure::durable)));

}  // namespace
