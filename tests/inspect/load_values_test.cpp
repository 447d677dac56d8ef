// SPDX-License-Identifier: BSD-3-Clause
//
// Loads dumps of values that JSON has no form for, and of objects behind pointers and hooks: the
// new pool gives the same dump, passes check(), and its program finds its data and can change it.
// Also tests what load_pool refuses.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/api/pool.hpp"
#include "perdure/container/box.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/hooked_list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/vector.hpp"
#include "tests/inspect/compare_blocks.hpp"
#include "tests/inspect/load_folder.hpp"
#include "tests/inspect/round_trip.hpp"

namespace perdure::test {
namespace {

struct Node {
  p<std::uint32_t> value;
  ptr<Node> next;
};
struct Order {
  p<std::uint64_t> number;
  list_hook hook;
  box<Place> notes;
};
struct Inside {
  p<double> number;
  map<std::string, vector<std::string>> lists;
};
struct Money {
  static constexpr std::string_view layout_id = "money/1";
  std::int64_t cents;
  char unit[8];
};
struct Priced {
  std::string what;
  Money price{};
};
struct Values {
  p<float> f;
  p<double> nan, other_nan, minus_zero, least;
  p<long double> extended;
  p<std::uint64_t> largest;
  p<__int128> wide;
  p<bool> yes;
  p<Colour> colour;
  p<std::uint8_t> grid[2][3];
  p<std::array<char, 6>> letters;
  string text, none;
  vector<std::string> binary;
  vector<std::optional<std::optional<std::uint8_t>>> maybes;
  vector<Priced> priced;
  hash_map<int, Inside> inside;
  box<Inside> boxed, empty;
  ptr<Node> first, also, lost;
  hash_map<std::uint64_t, Order> orders;
  map<std::int64_t, hooked_list<Order, &Order::hook>> prices;
};

TEST(Load, Values) {
  LoadFolder folder;
  const std::string from = folder.path("values"), to = folder.path("loaded");
  {
    auto pool = Pool<Values>::open(from);
    pool.update([](auto& tx, Values& root) {
      tx.write(root.f, 0.1F);
      tx.write(root.nan, std::numeric_limits<double>::quiet_NaN());
      tx.write(root.other_nan, std::bit_cast<double>(0xfff0'1234'5678'9abcULL));
      tx.write(root.minus_zero, -0.0);
      tx.write(root.least, std::numeric_limits<double>::denorm_min());
      tx.write(root.extended, 1.0L / 3);
      tx.write(root.largest, ~std::uint64_t{0});
      tx.write(root.wide, static_cast<__int128>(1) << 126);
      tx.write(root.yes, true);
      tx.write(root.colour, Colour::red);
      for (auto& row : root.grid)
        for (auto& one : row) tx.write(one, std::uint8_t{7});
      tx.write(root.letters, std::array<char, 6>{'a', 0, 'b', '\xff'});
      root.text.assign(tx, std::string("caf\xc3\xa9 \xf0\x9f\x98\x80 \"\\\x01\0", 14));
      for (const std::string& s : {std::string("\xff\0\x80", 3), std::string(), std::string("$")})
        root.binary.push_back(tx, s);
      using Maybe = std::optional<std::optional<std::uint8_t>>;
      for (const Maybe& m : {Maybe(), Maybe(std::optional<std::uint8_t>()), Maybe(3)})
        root.maybes.push_back(tx, m);
      root.priced.push_back(tx, {"x", {-5, {'E', 'U', 'R'}}});
      for (const int i : {1, 2, 3})
        root.inside.upsert(tx, i, [&](Inside& in) {
          tx(in.number) = i;
          in.lists.upsert(tx, "a", [&](auto& list) { list.push_back(tx, "b"); });
        });
    });
    pool.update([](auto& tx, Values& root) {
      root.boxed.make(tx);
      Node* const one = make<Node>(tx);
      Node* const two = make<Node>(tx);
      tx.write(one->value, 1U), tx.write(two->value, 2U);
      tx.write(one->next, two), tx.write(two->next, one);
      tx.write(root.first, one), tx.write(root.also, two);
      for (const std::uint64_t number : {1, 2, 3, 4})
        root.orders.upsert(tx, number, [&](Order& order) {
          tx(order.number) = number;
          if (number == 4) return;
          root.prices.upsert(tx, 995 + static_cast<std::int64_t>(number / 3),
                             [&](auto& waiting) { waiting.push_front(tx, order); });
        });
    });
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
  }
  expect_round_trip(from, to);
  auto pool = Pool<Values>::open(to);
  EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
  pool.update([](auto& tx, Values& root) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(tx.read(root.other_nan)), 0xfff0'1234'5678'9abcULL);
    EXPECT_TRUE(std::signbit(tx.read(root.minus_zero)));
    EXPECT_EQ(tx.read(root.extended), 1.0L / 3);
    EXPECT_TRUE(tx.read(root.wide) == static_cast<__int128>(1) << 126);
    EXPECT_EQ(root.priced.get(tx, 0).price.cents, -5);
    Node* const one = tx.read(root.first);
    EXPECT_EQ(tx.read(one->next), tx.read(root.also));
    EXPECT_EQ(tx.read(tx.read(one->next)->next), one);
    EXPECT_EQ(root.inside.find(tx, 2)->lists.find(tx, "a")->get(tx, 0), "b");
    std::string found;
    root.prices.find(tx, 995)->for_each(
        tx, [&](const Order& order) { found += std::to_string(tx(order.number)); });
    EXPECT_EQ(found, "21");
    root.orders.erase(tx, 2);  // it leaves its list
    found.clear();
    root.prices.find(tx, 995)->for_each(
        tx, [&](const Order& order) { found += std::to_string(tx(order.number)); });
    EXPECT_EQ(found, "1");
  });
  EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
}

struct Hashed {
  std::int32_t a = 0;
  bool operator==(const Hashed&) const = default;
  bool operator<(const Hashed& other) const { return a < other.a; }
};

}  // namespace
}  // namespace perdure::test

template <>
struct perdure::hash<perdure::test::Hashed> {
  [[nodiscard]] static std::uint64_t of(const perdure::test::Hashed& key) noexcept {
    return static_cast<std::uint64_t>(key.a) * 3;
  }
};

namespace perdure::test {
namespace {

struct Refused {
  p<std::uint32_t> fine;
  p<Money> only_named;
  ptr<void> untyped;
  hash_map<Hashed, int> hashed;
};

TEST(Load, RefusesWhatADumpDoesNotSay) {
  LoadFolder folder;
  const std::string to = folder.path("pool");
  const auto message = [&](const std::string& schema, std::string_view dump) -> std::string {
    try {
      (void)load(to, schema, dump);
    } catch (const error& e) {
      EXPECT_FALSE(std::filesystem::exists(to + ".loading"));
      return e.what();
    }
    return "loaded";
  };
  const std::string all = message(named_layout_of<Refused>(), "{}");
  for (const char* name : {"[1] only_named: 'money/1'", "[2] untyped: a pointer", "[3] hashed: "})
    EXPECT_NE(all.find(name), std::string::npos) << all;
  EXPECT_NE(message(layout_of<Refused>(), "{}").find("without the names"), std::string::npos);
  const std::string schema = "n: u8 @0 1\nnames: map<string,u8,15>/1 @64 64\n";
  const auto expect = [&](std::string_view dump, const char* part) {
    const std::string found = message(schema, dump);
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect(R"({"n": 256, "names": {}})", "line 1: field n: found '256', expected a value of type u8");
  expect("{\"n\": 1,\n\"names\": []}", "line 2: field names: found an array");
  expect(R"({"n": 1})", "no field 'names'");
  expect(R"({"n": 1, "names": {}, "n": 1})", "found the member 'n'");
  expect(R"({"n": 1, "names": {"b": 1, "a": 2}})", "a key is out of order");
  expect(R"({"n": 1, "names": {"a": 1, "a": 2}})", "a key is out of order");
  EXPECT_NE(message("m: hash_map<string,u8,128>/1 @0 64\n", R"({"m": {"a": 1, "b": 2, "a": 3}})")
                .find("a key twice"),
            std::string::npos);
  expect(R"({"n": 1, "names": {"$a": 1}})", "another $ before it");
  expect(R"({"n": 1, "names": {}} 7)", "the end of the document");
  expect(R"({"n": 1, "names": {})", "the end of the file");
  expect(R"({"n": 1, "names": {"a": 1)", "the end of the file");
  expect("", "the end of the file");
  const std::string rebuilt = "m: rebuilt<map<string,u8,15>/1,vector<u8>/1> @0 128\n";
  const std::string left = message(rebuilt, R"({"m": {"now": {"a": 1}, "before": [2]}})");
  EXPECT_NE(left.find("elements that are still to be moved"), std::string::npos) << left;
  EXPECT_EQ(message(rebuilt, R"({"m": {"now": {"a": 1}, "before": []}})"), "loaded");
  std::filesystem::remove(to);
  EXPECT_EQ(message(schema, R"({"names": {"a": 1}, "n": 2})"), "loaded");
  EXPECT_NE(message(schema, R"({"n": 1, "names": {}})").find("a file of this name"),
            std::string::npos);
}

}  // namespace
}  // namespace perdure::test
