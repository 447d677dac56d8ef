// SPDX-License-Identifier: BSD-3-Clause
//
// Layout texts: names find their fields, words that are not known do not end the reading, and no
// text, whatever it says, does more than throw error(corrupt).
#include "perdure/inspect/layout.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::inspect {
namespace {

const char* const text =
    "0: map<string,rec<{town:string@0,n:opt<u16>@8}16>,15>/1 @0 64\n"
    "1.0: u64 @64 8\n"
    "1.1: ptr<#1> @72 8\n"
    "2: their/3 @80 24\n"
    "3: map<money/1,u64,15>/1 @128 64\n"
    "4: table<{id:u64@0,at:time<1/1,i64>@8}16,key id,index at>/1 @192 256\n"
    "5: {i32@0,f64@8}16 @448 16\n"
    "#1.0: u32[4] @0 16\n";
const char* const names = "places,meta{next,first},theirs,prices,jobs,point{x,y},#1{marks}";

TEST(InspectLayout, NamesAndPlaces) {
  const Tree tree = read_layout(text, names);
  ASSERT_EQ(tree.root().parts.size(), 6U);
  EXPECT_EQ(tree.field("places").type->kind, Kind::map);
  EXPECT_EQ(tree.field("meta.first").at, 72U);
  EXPECT_EQ(tree.field("meta.first").type->element().parts.front().name, "marks");
  EXPECT_EQ(tree.field("point.y").at, 456U);
  EXPECT_EQ(tree.field("4").type->kind, Kind::table);
  EXPECT_EQ(tree.field("jobs").type->parts[2].name, "index at");
  EXPECT_THROW((void)tree.field("nobody"), error);
  EXPECT_EQ(read_layout(text, "").field("1.1").at, 72U);
}

TEST(InspectLayout, WhatIsNotKnownIsSkipped) {
  const Tree tree = read_layout(text, names);
  EXPECT_EQ(tree.field("theirs").type->kind, Kind::unknown);
  EXPECT_EQ(tree.field("theirs").type->size, 24U);
  // The size of its keys is not said, so its nodes are not known.
  EXPECT_EQ(tree.field("prices").type->kind, Kind::unknown);
  EXPECT_EQ(tree.field("prices").type->size, 64U);
  EXPECT_EQ(read_layout("0: vector<u64>/2 @0 40\n", "").root().parts[0].type->kind, Kind::unknown);
  EXPECT_EQ(read_layout("0: vector<u64>/1 @0 40\n", "").root().parts[0].type->kind, Kind::unknown);
}

TEST(InspectLayout, AnyTextEnds) {
  std::mt19937_64 random(11);
  unsigned refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = text, changed_names = names;
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
      std::string& what = random() % 4 == 0 ? changed_names : changed;
      const std::size_t at = random() % what.size();
      const char* const often = "<>{}@,:.!^#[]/ \n0129";
      switch (random() % 3) {
        case 0: what[at] = often[random() % 20]; break;
        case 1: what.erase(at, random() % 5); break;
        default: what.insert(at, what.substr(random() % what.size(), random() % 30)); break;
      }
      if (what.empty()) what = "0";
    }
    try {
      (void)read_layout(changed, changed_names);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::corrupt) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST(InspectLayout, DeepTextIsRefused) {
  std::string deep = "0: ";
  for (int i = 0; i < 500; ++i) deep += "vec<";
  EXPECT_THROW((void)read_layout(deep + "u8" + std::string(500, '>') + " @0 8\n", ""), error);
}

}  // namespace
}  // namespace perdure::inspect
