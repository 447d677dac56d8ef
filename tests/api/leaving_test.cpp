// SPDX-License-Identifier: BSD-3-Clause
//
// What may leave a transaction: the trait behind the assertions of update() and view(), tested on
// types that programs return. tests/compile_fail tests that the calls themselves refuse a place.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <any>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "perdure/perdure.hpp"

namespace {

using perdure::detail::leaves_a_transaction;

struct Node {
  perdure::p<std::uint64_t> value;
  perdure::ptr<Node> next;
};
struct Root {
  perdure::map<std::uint64_t, std::uint64_t> map;
  perdure::p<std::uint64_t> count;
};
using Cursor = perdure::map<std::uint64_t, std::uint64_t>::cursor;

// --- values ---
enum class Colour { red, green };
struct Plain {
  int a;
  double b[3];
  std::string c;
  std::optional<std::string> d;  // a const char* could become one: a pointer
  std::any e;
  std::function<void(Node*)> f;
  std::vector<std::pair<std::string, int>> g;
};
struct Bits {
  unsigned a : 3, b : 5;
  std::optional<std::string> c;
};
struct Either {
  int a;
  union {
    int b;
    float c;
  };
};
struct Many {
  int a[10], b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s;
};
struct Tree {
  std::string name;
  std::vector<Tree> below;
};
struct Secret {
 public:
  explicit Secret(int x) : x_(x) {}
  [[nodiscard]] int x() const { return x_; }

 private:
  int x_;
};
struct NoDefault {
  Secret a;
  int b = 1;
  std::unique_ptr<int> c;
};
struct Handler {
  void (*call)(int);
};
struct NeverDefined;
template <class Tag>
struct Id {
  std::uint64_t value;
};

static_assert(leaves_a_transaction<void> && leaves_a_transaction<int> &&
              leaves_a_transaction<const bool> && leaves_a_transaction<Colour>);
static_assert(leaves_a_transaction<std::string> &&
              leaves_a_transaction<std::optional<std::string>>);
static_assert(leaves_a_transaction<std::vector<std::string>> &&
              leaves_a_transaction<std::array<int, 4>>);
static_assert(leaves_a_transaction<std::map<std::string, std::vector<int>>> &&
              leaves_a_transaction<std::set<int>>);
static_assert(leaves_a_transaction<std::unordered_map<std::string, Plain>> &&
              leaves_a_transaction<std::variant<int, std::string>>);
static_assert(leaves_a_transaction<std::unique_ptr<Plain>> &&
              leaves_a_transaction<std::shared_ptr<Secret>> && leaves_a_transaction<std::any>);
static_assert(leaves_a_transaction<std::tuple<int, std::string>> &&
              leaves_a_transaction<std::chrono::system_clock::time_point>);
static_assert(leaves_a_transaction<std::function<void(Node*)>> &&
              leaves_a_transaction<void (*)(Node*)> && leaves_a_transaction<Handler>);
static_assert(leaves_a_transaction<Plain> && leaves_a_transaction<Bits> &&
              leaves_a_transaction<Either> && leaves_a_transaction<Many>);
static_assert(leaves_a_transaction<Tree> && leaves_a_transaction<Secret> &&
              leaves_a_transaction<NoDefault> && leaves_a_transaction<struct stat>);
static_assert(leaves_a_transaction<std::shared_ptr<NeverDefined>> &&
              leaves_a_transaction<Id<NeverDefined>> && leaves_a_transaction<Id<Node*>>);
static_assert(leaves_a_transaction<perdure::Result<std::string>> &&
              leaves_a_transaction<perdure::Status> && leaves_a_transaction<perdure::Stats>);
static_assert(leaves_a_transaction<perdure::Receipt<int>> &&
              leaves_a_transaction<perdure::Receipt<void>>);

// --- places ---
struct Holder {
  int a;
  Either b;
  std::optional<std::string> c;
  std::vector<std::pair<int, Cursor>> d;
};
struct Refers {
  Root& root;
  int b = 2;
};
struct List {
  std::vector<List> below;
  Node* node;
};
struct LastOfSixteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o;
  Cursor place;
};
struct InArray {
  int a;
  Node* places[3];
};

static_assert(!leaves_a_transaction<Node*> && !leaves_a_transaction<const Node* const> &&
              !leaves_a_transaction<void*>);
static_assert(!leaves_a_transaction<Root&> && !leaves_a_transaction<const std::uint64_t&> &&
              !leaves_a_transaction<Node&&>);
static_assert(!leaves_a_transaction<Cursor> &&
              !leaves_a_transaction<perdure::rb_tree<int, int>::cursor>);
static_assert(!leaves_a_transaction<perdure::hash_map<int, int>::cursor> &&
              !leaves_a_transaction<perdure::list<int>::cursor>);
static_assert(!leaves_a_transaction<perdure::vector<int>::cursor> &&
              !leaves_a_transaction<perdure::queue<int>::cursor>);
static_assert(!leaves_a_transaction<std::optional<Cursor>> &&
              !leaves_a_transaction<std::pair<int, Node*>>);
static_assert(!leaves_a_transaction<std::tuple<int, std::string, Cursor>> &&
              !leaves_a_transaction<std::vector<Node*>>);
static_assert(!leaves_a_transaction<std::array<Node*, 2>> &&
              !leaves_a_transaction<std::variant<int, Cursor>>);
static_assert(!leaves_a_transaction<std::map<std::string, Node*>> &&
              !leaves_a_transaction<std::vector<std::vector<Cursor>>>);
static_assert(!leaves_a_transaction<std::unique_ptr<Node>> &&
              !leaves_a_transaction<std::shared_ptr<Root>>);
static_assert(!leaves_a_transaction<std::span<const std::uint64_t>> &&
              !leaves_a_transaction<std::reference_wrapper<const int>>);
static_assert(!leaves_a_transaction<perdure::p<int>> && !leaves_a_transaction<perdure::ptr<Node>> &&
              !leaves_a_transaction<perdure::string>);
static_assert(!leaves_a_transaction<Holder> && !leaves_a_transaction<Refers> &&
              !leaves_a_transaction<List>);
static_assert(!leaves_a_transaction<LastOfSixteen> && !leaves_a_transaction<InArray> &&
              !leaves_a_transaction<std::optional<InArray>>);

TEST(Leaving, ValuesArriveWhole) {
  const std::string path = testing::TempDir() + "leaving-" + std::to_string(::getpid()) + ".pool";
  std::filesystem::remove(path);
  {
    perdure::Options options;
    options.creation.max_size = 64 << 20;
    options.creation.log_size = 1 << 20;
    options.medium = "emulated";
    auto pool = perdure::Pool<Root>::open(path, options);
    const auto receipt = pool.update([](auto& tx, Root& root) {
      root.map.put(tx, 1, 10);
      tx(root.count) = 7;
      return Plain{static_cast<int>(tx.read(root.count)), {1, 2, 3}, "c", "d", 5, {}, {{"g", 6}}};
    });
    EXPECT_EQ(receipt.value().a, 7);
    EXPECT_EQ(receipt.value().d, "d");
    EXPECT_EQ(receipt.value().g.front().second, 6);
    const auto both = pool.view([](auto& tx, const Root& root) {
      return std::pair(root.map.find(tx, 1), Tree{"a", {{"b", {}}}});
    });
    EXPECT_EQ(both.first, 10U);
    EXPECT_EQ(both.second.below.front().name, "b");
  }
  std::filesystem::remove(path);
}

}  // namespace
