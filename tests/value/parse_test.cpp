// SPDX-License-Identifier: BSD-3-Clause
//
// A layout text can be read back: the same text is printed again, and the same sizes and places are
// found; damaged texts are refused and never followed.
#include "perdure/value/parse.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "perdure/value/type_of.hpp"

namespace perdure::test {
namespace {

using value::Kind;
using value::TextVersion;
using value::Type;

enum class Colour : std::uint16_t { red };
struct Point {
  std::int32_t x, y;
};
struct Ordered {
  std::int32_t x;
  friend bool operator<(const Ordered& a, const Ordered& b) { return a.x < b.x; }
};
struct Hashed {
  Ordered inner;
  friend bool operator<(const Hashed& a, const Hashed& b) { return a.inner < b.inner; }
};
struct Tree {
  std::string name;
  std::vector<Tree> below;
};
struct Inner;
/// Holds itself by value, within a vector.
struct Outer {
  std::vector<Inner> inner;
};
struct Inner {
  Outer outer;
  std::uint8_t flag;
};
class Half {
 public:
  static constexpr std::string_view layout_id = "half<a,b>/1";
  friend bool operator<(const Half& a, const Half& b) { return a.high_ < b.high_; }

 private:
  std::uint32_t high_ = 0, low_ = 0;
};
struct Everything {
  std::uint8_t a;
  double b;
  std::string c;
  std::optional<Point> d;
  std::variant<std::monostate, int, std::string, Tree> e;
  std::array<std::optional<std::uint16_t>, 3> f;
  std::pair<std::string, char> g;
  std::tuple<char, std::vector<std::vector<int>>, bool> h;
  std::chrono::sys_seconds i;
  std::chrono::duration<float> j;
  std::chrono::local_days k;
  Half l;
  std::optional<Half> m;
  value::reversed<std::string> n;
  value::reversed<Ordered> o;
  Colour p;
  std::byte q;
  std::vector<Everything> r;
  Outer s;
};

void expect_same(const Type& a, const Type& b, unsigned depth = 0) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.align, b.align);
  EXPECT_EQ(a.owns, b.owns);
  EXPECT_EQ(a.reversed, b.reversed);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.word, b.word);
  if (a.kind == Kind::scalar) EXPECT_EQ(a.number, b.number);
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (std::size_t i = 0; i < a.parts.size() && depth < 8; ++i) {
    EXPECT_EQ(a.parts[i].name, b.parts[i].name);
    EXPECT_EQ(a.parts[i].at, b.parts[i].at);
    expect_same(*a.parts[i].type, *b.parts[i].type, depth + 1);
  }
}

void expect_read_back(const Type& type) {
  for (const TextVersion version : {TextVersion::plain, TextVersion::marked}) {
    const std::string text = value::text_of(type, version);
    const auto parsed = value::parse(text);
    ASSERT_TRUE(parsed) << parsed.status().message();
    EXPECT_EQ(value::text_of(parsed->type(), version), text);
    expect_same(type, parsed->type());
    if (type.kind == Kind::structure) EXPECT_EQ(parsed->type().shape, type.shape);
  }
}

TEST(Parse, TypesOfPrograms) {
  expect_read_back(value::type_of<bool>());
  expect_read_back(value::type_of<char>());
  expect_read_back(value::type_of<std::byte>());
  expect_read_back(value::type_of<Colour>());
  expect_read_back(value::type_of<float>());
  expect_read_back(value::type_of<std::string>());
  expect_read_back(value::type_of<std::variant<std::monostate>>());
  expect_read_back(value::type_of<Point>());
  expect_read_back(value::type_of<Hashed>());
  expect_read_back(value::type_of<Half>());
  expect_read_back(value::type_of<std::vector<std::optional<Half>>>());
  expect_read_back(value::type_of<Tree>());
  expect_read_back(value::type_of<Outer>());
  expect_read_back(value::type_of<Inner>());
  expect_read_back(value::type_of<Everything>());
}

TEST(Parse, WhatHoldsAnUnfinishedStructOwnsItsBlocks) {
  EXPECT_TRUE(value::type_of<Outer>().owns);
  EXPECT_TRUE(value::type_of<Outer>().parts[0].type->element().owns);
}

TEST(Parse, Marks) {
  EXPECT_EQ(value::text_of(value::type_of<Hashed>(), TextVersion::marked),
            "less<{inner:less<{x:i32@0}4>@0}4>");
  EXPECT_EQ(value::text_of(value::type_of<Hashed>()), "{inner:{x:i32@0}4@0}4");
  EXPECT_EQ(value::text_of(value::type_of<Half>()), "half<a,b>/1!8/4");
  const auto both = value::parse("desc<less<hash<{x:i32@0}4>>>");
  ASSERT_TRUE(both) << both.status().message();
  EXPECT_EQ(value::text_of(both->type(), TextVersion::marked), "desc<less<hash<{x:i32@0}4>>>");
  EXPECT_EQ(value::text_of(both->type()), "desc<{x:i32@0}4>");
}

TEST(Parse, AValueInFrontOfOtherText) {
  std::string_view text = "{x:i32@0}4,15>/1";
  const auto parsed = value::parse_front(text);
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(text, ",15>/1");
  EXPECT_EQ(parsed->type().size, 4U);
}

/// Makes random types, and lays them out by itself.
class Random {
 public:
  explicit Random(std::uint32_t seed) : random_(seed) {}

  const Type* make(unsigned depth) {
    if (depth == 0 || pick(3) == 0) return leaf();
    switch (pick(6)) {
      case 0: return sequence(depth);
      case 1: return tagged(Kind::optional, 1, depth);
      case 2: return tagged(Kind::variant, 1 + pick(4), depth);
      case 3: {
        Type& out = add(Kind::array);
        out.parts.push_back({{}, make(depth - 1), 0, 0});
        out.count = pick(5);
        const Type& one = out.element();
        out.size = static_cast<std::uint32_t>(one.size * out.count);
        out.align = one.align;
        out.owns = one.owns;
        return &out;
      }
      default: return structure(depth);
    }
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return random_() % n; }
  Type& add(Kind kind) {
    Type& type = types_.emplace_back();
    type.kind = kind;
    return type;
  }
  const Type* leaf() {
    static constexpr const char* words[] = {"u8", "i16", "enum:u32", "time<1/1000,i64>", "f64"};
    static constexpr std::uint32_t sizes[] = {1, 2, 4, 8, 8};
    if (pick(4) == 0) {
      Type& text = add(Kind::text);
      text.size = text.align = 8;
      text.owns = true;
      return &text;
    }
    Type& type = add(Kind::scalar);
    const std::uint32_t which = pick(6);
    if (which == 5) {
      type.word = "their<a,b>/2";
      type.number = value::Number::opaque;
      type.align = 1U << pick(4);
      type.size = type.align * pick(4);
      return &type;
    }
    type.word = words[which];
    type.size = type.align = sizes[which];
    type.number = which == 4                 ? value::Number::floating
                  : which == 1 || which == 3 ? value::Number::signed_integer
                                             : value::Number::unsigned_integer;
    return &type;
  }
  const Type* sequence(unsigned depth) {
    Type& out = add(Kind::sequence);
    out.size = out.align = 8;
    out.owns = true;
    // Sometimes of a structure around it.
    if (!around_.empty() && pick(3) == 0)
      out.parts.push_back({{}, around_[pick(static_cast<std::uint32_t>(around_.size()))], 0, 0});
    else
      out.parts.push_back({{}, make(depth - 1), 0, 0});
    return &out;
  }
  const Type* tagged(Kind kind, unsigned n, unsigned depth) {
    Type& out = add(kind);
    std::uint32_t largest = 0;
    for (unsigned i = 0; i < n; ++i) {
      const Type* part = make(depth - 1);
      out.parts.push_back({{}, part, 0, 0});
      largest = std::max(largest, part->size);
      out.align = std::max(out.align, part->align);
      out.owns = out.owns || part->owns;
    }
    for (value::Part& part : out.parts) part.at = out.align;
    out.size = out.align + (largest + out.align - 1) / out.align * out.align;
    return &out;
  }
  const Type* structure(unsigned depth) {
    static constexpr std::string_view names[] = {"a", "b", "second", "_x9", "0"};
    Type& out = add(Kind::structure);
    around_.push_back(&out);
    const unsigned n = pick(5);
    for (unsigned i = 0; i < n; ++i) {
      const Type* part = make(depth - 1);
      const std::uint32_t at = (out.size + part->align - 1) / part->align * part->align;
      out.parts.push_back({names[i], part, at, 0});
      out.size = at + part->size;
      out.align = std::max(out.align, part->align);
      out.owns = out.owns || part->owns;
    }
    around_.pop_back();
    out.size = (out.size + out.align - 1) / out.align * out.align;
    out.shape = value::shape_of(value::text_of(out));
    return &out;
  }

  std::mt19937 random_;
  std::deque<Type> types_;
  std::vector<const Type*> around_;
};

TEST(Parse, RandomTypes) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    expect_read_back(*random.make(5));
    if (HasFailure()) return;
  }
}

/// Damaged texts are refused, or are the text of another type.
TEST(Parse, DamagedTexts) {
  std::mt19937 random(7);
  static constexpr std::string_view letters = "{}<>,@!^:/0123456789abstring vecoptdesclesshash\x01";
  unsigned refused = 0, read = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    Random types(seed % 100);
    std::string text = value::text_of(*types.make(5));
    for (unsigned n = 1 + random() % 3; n > 0 && !text.empty(); --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = letters[random() % letters.size()]; break;
        case 1: text.erase(at, 1 + random() % 8); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 20)); break;
        default: text.resize(at); break;
      }
    }
    const auto parsed = value::parse(text);
    if (parsed) {
      ++read;
      ASSERT_EQ(value::text_of(parsed->type(), TextVersion::marked), text);
    } else {
      ++refused;
      ASSERT_FALSE(parsed.status().message().empty());
    }
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(read, 50U);
}

TEST(Parse, TextsThatWouldLeadAWalkAstray) {
  const auto refused = [](std::string_view text, std::string_view why) {
    const auto parsed = value::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.status().message().find(why), std::string::npos) << text << "\n"
                                                                      << parsed.status().message();
  };
  refused("", "an unknown type");
  refused("{a:^1@0}8", "contains itself without a vector");
  refused("{a:{b:opt<^2>@0}8@0}8", "contains itself without a vector");
  refused("{a:vec<^2>@0}8", "no number up to 1");
  refused("{a:vec<^0>@0}8", "0 levels up");
  refused("desc<{a:vec<^1>@0}8>", "desc<> that contains itself");
  refused("{a:u64@0,b:u64@4}16", "field 'b' at 4 instead of 8");
  refused("{a:u64@0,b:u64@16}24", "field 'b' at 16 instead of 8");
  refused("{a:u8@0,b:u16@1}4", "field 'b' at 1 instead of 2");
  refused("{a:u64@0}12", "12 bytes whose fields take 8");
  refused("{a:u64@0}4294967304", "no number up to");
  refused("{a:arr<u64,1073741824>@0}8", "a value of more than 1073741824 bytes");
  refused("arr<arr<arr<u64,65536>,65536>,65536>", "a value of more than");
  refused("{a:u64@00}8", "no number");
  refused("{a:u64@0}8x", "1 bytes behind");
  refused("var<>", "an unknown type");
  refused("opt<u8,u8>", "',' instead of '>'");
  refused("less<u8>", "a mark that has no meaning there");
  refused("hash<less<{}0>>", "a mark that has no meaning there");
  refused("time<0/1,i64>", "a unit of time of 0");
  refused("money/1", "an unknown type");
  refused("money/1!8/3", "an alignment");
  refused("money/1!8/8", "an alignment");
  std::string deep;
  for (int i = 0; i < 101; ++i) deep += "vec<";
  refused(deep + "u8" + std::string(101, '>'), "types nested more than 100 deep");
  std::string large(value::longest_text + 1, 'x');
  refused(large, "expected at most 1048576");
}

}  // namespace
}  // namespace perdure::test
