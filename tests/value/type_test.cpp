// SPDX-License-Identifier: BSD-3-Clause
//
// The layout texts, extents and shapes of values, which are the pool format; where a T lies.
#include <gtest/gtest.h>

#include "perdure/container/hash_map.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/vector.hpp"
#include "perdure/value/placement.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::test {
namespace {

enum class Colour : std::uint16_t { red };
struct Point {
  std::int32_t x, y;
};
struct Ordered {
  std::int32_t x;
  friend bool operator<(const Ordered& a, const Ordered& b) { return a.x < b.x; }
};
struct Tree {
  std::string name;
  std::vector<Tree> below;
};
struct Named {
  std::string name;
  Point at;
};
struct Deep {
  struct Inner {
    std::vector<Deep> up;
    std::vector<Inner> same;
  };
  std::vector<Inner> inner;
};
/// A class that states how it lies.
class Money {
 public:
  static constexpr std::string_view layout_id = "money/1";
  constexpr Money() = default;
  constexpr explicit Money(std::int64_t cents) : cents_(cents) {}

 private:
  std::int64_t cents_ = 0;
};
#define EIGHT(x)    \
  int x##0;         \
  std::string x##1; \
  char x##2;        \
  double x##3;      \
  short x##4;       \
  long x##5;        \
  bool x##6;        \
  float x##7;
struct Wide {
  EIGHT(a) EIGHT(b) EIGHT(c) EIGHT(d) EIGHT(e) EIGHT(f) EIGHT(g) EIGHT(h)
};
#undef EIGHT

template <class T>
std::string text() {
  return value::text_of(value::type_of<T>());
}
template <class T>
void expect_extent(std::size_t size, std::size_t align) {
  EXPECT_EQ(value::extent_of<T>().size, size);
  EXPECT_EQ(value::extent_of<T>().align, align);
  EXPECT_EQ(value::type_of<T>().size, size);
  EXPECT_EQ(value::type_of<T>().align, align);
}

TEST(ValueType, Texts) {
  EXPECT_EQ(text<bool>(), "bool");
  EXPECT_EQ(text<char>(), "char");
  EXPECT_EQ(text<std::int8_t>(), "i8");
  EXPECT_EQ(text<std::uint64_t>(), "u64");
  EXPECT_EQ(text<float>(), "f32");
  EXPECT_EQ(text<Colour>(), "enum:u16");
  EXPECT_EQ(text<std::byte>(), "byte");
  EXPECT_EQ(text<std::string>(), "string");
  EXPECT_EQ(text<std::vector<std::string>>(), "vec<string>");
  EXPECT_EQ(text<std::optional<std::uint8_t>>(), "opt<u8>");
  EXPECT_EQ((text<std::variant<std::monostate, int, std::string>>()), "var<{}0,i32,string>");
  EXPECT_EQ((text<std::array<std::array<char, 2>, 3>>()), "arr<arr<char,2>,3>");
  EXPECT_EQ((text<std::pair<int, std::string>>()), "{first:i32@0,second:string@8}16");
  EXPECT_EQ((text<std::tuple<char, int, char>>()), "{0:char@0,1:i32@4,2:char@8}12");
  EXPECT_EQ(text<std::chrono::sys_seconds>(), "time<1/1,i64>");
  EXPECT_EQ(text<std::chrono::system_clock::time_point>(), "time<1/1000000000,i64>");
  EXPECT_EQ(text<std::chrono::local_days>(), "local<86400/1,i64>");
  EXPECT_EQ(text<std::chrono::milliseconds>(), "span<1/1000,i64>");
  EXPECT_EQ((text<std::chrono::duration<double>>()), "span<1/1,f64>");
  EXPECT_EQ(text<Point>(), "{x:i32@0,y:i32@4}8");
  EXPECT_EQ(text<Money>(), "money/1!8");
}

TEST(ValueType, AStructThatContainsItselfIsNamedByItsDistance) {
  EXPECT_EQ(text<std::vector<Point>>(), "vec<{x:i32@0,y:i32@4}8>");
  EXPECT_EQ(text<Deep>(), "{inner:vec<{up:vec<^2>@0,same:vec<^1>@8}16>@0}8");
  EXPECT_EQ(text<Deep::Inner>(), "{up:vec<{inner:vec<^2>@0}8>@0,same:vec<^1>@8}16");
}

TEST(ValueType, Extents) {
  expect_extent<std::string>(8, 8);
  expect_extent<std::vector<Tree>>(8, 8);
  expect_extent<std::optional<std::uint8_t>>(2, 1);
  expect_extent<std::optional<double>>(16, 8);
  expect_extent<std::variant<std::uint8_t, std::uint32_t>>(8, 4);
  expect_extent<std::variant<std::monostate>>(1, 1);
  expect_extent<std::tuple<char, int, char>>(12, 4);
  expect_extent<std::array<std::uint16_t, 5>>(10, 2);
  expect_extent<Point>(8, 4);
  expect_extent<Wide>(8 * 56, 8);
  EXPECT_EQ(value::type_of<Wide>().parts.size(), 64U);
  EXPECT_EQ(value::type_of<Wide>().parts[63].name, "h7");
}

TEST(ValueType, WhatOwnsBlocksAndWhatIsItsImage) {
  EXPECT_TRUE(value::type_of<Point>().plain && !value::type_of<Point>().owns);
  EXPECT_TRUE((value::type_of<std::array<Point, 3>>().plain));
  EXPECT_TRUE((value::type_of<std::pair<int, int>>().plain));
  EXPECT_FALSE((value::type_of<std::tuple<char, int>>().plain));  // libstdc++ stores it backwards
  EXPECT_FALSE(value::type_of<std::optional<int>>().plain ||
               value::type_of<std::optional<int>>().owns);
  EXPECT_TRUE((value::type_of<std::variant<int, std::string>>().owns));
  EXPECT_TRUE(value::type_of<Deep>().owns && !value::type_of<Deep>().plain);
}

/// The shape is in every record: it must not change.
TEST(ValueType, Shapes) {
  EXPECT_EQ(value::type_of<Point>().shape, value::shape_of("{x:i32@0,y:i32@4}8"));
  EXPECT_EQ(value::shape_of("{x:i32@0,y:i32@4}8"), 2510519776530448001ULL);
}

using value::Placement;
using value::placement_of;
static_assert(placement_of<int>() == Placement::bytes);
static_assert(placement_of<Colour, true>() == Placement::bytes);
static_assert(placement_of<std::array<int, 3>>() == Placement::bytes);
static_assert(placement_of<std::chrono::sys_seconds>() == Placement::bytes);
static_assert(placement_of<Money>() == Placement::bytes);
static_assert(placement_of<Point*>() == Placement::bytes);
static_assert(placement_of<std::string>() == Placement::text);
static_assert(placement_of<Point>() == Placement::bytes);
static_assert(placement_of<Tree>() == Placement::record);
static_assert(placement_of<Point, true>() == Placement::image);  // it has no order of its own
static_assert(placement_of<Ordered, true>() == Placement::bytes);
static_assert(placement_of<Tree, true>() == Placement::image);
static_assert(placement_of<std::optional<int>>() == Placement::image);
static_assert(placement_of<std::pair<int, int>>() == Placement::image);
static_assert(placement_of<std::array<std::string, 2>>() == Placement::image);
static_assert(placement_of<std::array<std::optional<int>, 2>>() == Placement::image);
static_assert(placement_of<vector<int>>() == Placement::object);
struct Account {
  p<int> balance;
};
struct Bank {
  Account first;
};
static_assert(placement_of<Account>() == Placement::object);
static_assert(placement_of<Bank>() == Placement::object);

TEST(ValueType, WhatStandsForValuesInAContainersLayout) {
  EXPECT_EQ((map<int, Point>::layout_text()), "map<i32,{i32@0,i32@4}8,15>/1");
  EXPECT_EQ((map<int, Named>::layout_text()),
            "map<i32,rec<{name:string@0,at:{x:i32@0,y:i32@4}8@8}16>,15>/1");
  EXPECT_EQ((map<Point, int>::layout_text()), "map<{x:i32@0,y:i32@4}8,i32,15>/1");
  EXPECT_EQ((map<Ordered, int>::layout_text()), "map<{i32@0}4,i32,15>/1");
  EXPECT_EQ((hash_map<int, vector<Account>>::layout_text()),
            "hash_map<i32,own<vector<own<{i32@0}4>>/1>,128>/1");
  EXPECT_EQ((vector<std::chrono::sys_seconds>::layout_text()), "vector<time<1/1,i64>>/1");
}

template <class C>
std::string named_text() {
  LayoutNames names(LayoutVersion::named);
  return C::layout_text(names);
}

/// Pools without a catalog have the texts above; those with one have these.
TEST(ValueType, TextsThatNameWhatVersion2MayChange) {
  EXPECT_EQ((named_text<map<int, Point>>()), "map<i32,{x:i32@0,y:i32@4}8,15>/1");
  EXPECT_EQ((named_text<map<Point, std::array<Point, 2>>>()),
            "map<{x:i32@0,y:i32@4}8,{x:i32@0,y:i32@4}8[2],15>/1");
  EXPECT_EQ((named_text<map<Ordered, int>>()), "map<less<{x:i32@0}4>,i32,15>/1");
  EXPECT_EQ((named_text<hash_map<std::pair<Ordered, std::string>, int>>()),
            "hash_map<{first:less<{x:i32@0}4>@0,second:string@8}16,i32,128>/1");
  // The order of a value that is no key does not matter.
  EXPECT_EQ((named_text<vector<Ordered>>()), "vector<{x:i32@0}4>/1");
  EXPECT_EQ((named_text<map<int, Named>>()),
            "map<i32,rec<{name:string@0,at:{x:i32@0,y:i32@4}8@8}16>,15>/1");
}

}  // namespace
}  // namespace perdure::test
