// SPDX-License-Identifier: BSD-3-Clause
//
// tx(field) inside update(): every form in which it is a value or takes one. The forms that would
// name the field instead of its value do not compile: tests/compile_fail/cases/auto_*.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/perdure.hpp"

namespace {

using perdure::p;
using perdure::ptr;

enum class Colour : std::uint8_t { red, green };
struct Node {
  p<std::uint64_t> value;
  ptr<Node> next;
};
struct Root {
  p<std::uint64_t> a, b;
  p<std::uint32_t> small;
  p<bool> flag;
  p<Colour> colour;
  p<std::array<std::uint64_t, 4>> four;
  ptr<Node> head;
};

template <class Engines>
class Persistent : public testing::Test {
 protected:
  Persistent() {
    std::filesystem::remove(path_);
    perdure::Options options;
    options.creation.max_size = 64 << 20;
    options.creation.log_size = 1 << 20;
    options.medium = "emulated";
    pool_.emplace(perdure::Pool<Root, Engines>::open(path_, options));
  }
  ~Persistent() override {
    pool_.reset();
    std::filesystem::remove(path_);
  }
  std::string path_ = testing::TempDir() + "persistent-" + std::to_string(::getpid()) + ".pool";
  std::optional<perdure::Pool<Root, Engines>> pool_;
};

using Engines = testing::Types<perdure::default_engines, perdure::engines<perdure::shadow>>;
TYPED_TEST_SUITE(Persistent, Engines);

TYPED_TEST(Persistent, AFieldIsReadAndWrittenInOneExpression) {
  this->pool_->update([](auto& tx, Root& root) {
    tx(root.a) = 3;
    const std::uint64_t old = tx(root.a);
    tx(root.a) = 5;
    EXPECT_EQ(old, 3U);
    tx(root.b) = tx(root.a);
    tx(root.small) = static_cast<std::uint32_t>(tx(root.a) * 2);
    tx(root.b) += tx(root.small);
    EXPECT_EQ(tx.read(root.b), 15U);
    tx(root.a) = tx(root.b) = 7;
    EXPECT_EQ(tx.read(root.a), 7U);
    EXPECT_EQ((tx(root.a) -= 2), 5U);
    EXPECT_EQ(++tx(root.a), 6U);
    EXPECT_EQ(tx(root.a)++, 6U);
    EXPECT_EQ(--tx(root.a), 6U);
    EXPECT_EQ(tx(root.a)--, 6U);
    EXPECT_TRUE(tx(root.a) == 5 && tx(root.a) < tx(root.b));
    tx(root.flag) = tx(root.a) > 4;
    if (!tx(root.flag)) ADD_FAILURE();
    tx(root.colour) = Colour::green;
    switch (tx(root.colour)) {
      case Colour::red: ADD_FAILURE();
      case Colour::green: break;
    }
    tx(root.four) = {1, 2, 3, 4};
    const std::array<std::uint64_t, 4> four = tx(root.four);
    EXPECT_EQ(four[3], 4U);
  });
}

TYPED_TEST(Persistent, APointerIsFollowedInOneExpression) {
  this->pool_->update([](auto& tx, Root& root) {
    tx(root.head) = perdure::make<Node>(tx, 1U, tx(root.head));
    tx(root.head) = perdure::make<Node>(tx, 2U, tx(root.head));
    EXPECT_EQ(tx.read(tx(root.head)->value), 2U);
    tx(tx(root.head)->value) = 3;
    EXPECT_EQ(tx.read((*tx(root.head)).value), 3U);
    tx(tx(root.head)->next) = tx(tx(tx(root.head)->next)->next);
    EXPECT_TRUE(tx(tx(root.head)->next) == nullptr);
    Node* const node = tx(root.head);
    EXPECT_TRUE(node == tx(root.head) && node != nullptr);
  });
}

TYPED_TEST(Persistent, AFieldIsReturnedAsItsValue) {
  const auto first = this->pool_->update([](auto& tx, Root& root) {
    tx(root.a) = 8;
    return tx(root.a);
  });
  static_assert(std::is_same_v<decltype(first), const perdure::Receipt<std::uint64_t>>);
  EXPECT_EQ(first.value(), 8U);
  EXPECT_EQ(this->pool_->update([](auto& tx, Root& root) { return tx(root.a) = 9; }).value(), 9U);
  EXPECT_EQ(this->pool_->update([](auto& tx, Root& root) { return tx(root.a)++; }).value(), 9U);
  EXPECT_EQ(
      this->pool_->update(perdure::async, [](auto& tx, Root& root) { return tx(root.a); }).value(),
      10U);
  EXPECT_EQ(
      this->pool_->try_update([](auto& tx, Root& root) { return tx(root.a); }).value().value(),
      10U);
  EXPECT_EQ(this->pool_->view([](auto& tx, const Root& root) { return tx(root.a); }), 10U);
  const auto colour = this->pool_->update([](auto& tx, Root& root) { return tx(root.colour); });
  EXPECT_TRUE(colour.value() == Colour::red);
}

}  // namespace
