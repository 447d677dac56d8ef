// SPDX-License-Identifier: BSD-3-Clause
//
// rebuilt over several versions of a program: openings that continue after one that was cut short,
// how later versions read the records, steps that are missing or fit nothing, and older programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "perdure/container/rebuilt.hpp"
#include "perdure/perdure.hpp"
#include "tests/api/small_pool.hpp"
#include "tests/api/versions.hpp"
#include "tests/inspect/round_trip.hpp"

namespace perdure {
namespace {

using Lines = std::vector<std::string>;

class RebuiltHistory : public test::Versions {
 protected:
  /// An opening whose work is cut short after the first batch, of `batch`.
  template <class Root>
  void cut_short(Options options, std::uint64_t batch) {
    options.migrate.batch = batch;
    options.migrate.progress = [](const std::string&, std::uint64_t) {
      throw std::runtime_error("cut short");
    };
    EXPECT_THROW((void)Pool<Root>::open(path, options), std::runtime_error);
  }
  static Options with(std::vector<MigrationStep> steps) {
    Options options = test::small_pool();
    options.migrate.steps = std::move(steps);
    return options;
  }
};

struct OldUser {
  std::uint64_t id = 0;
  std::string name, nick;
};
struct User {
  std::uint64_t id = 0;
  std::string name, nick;
};
using OldUsers = table<OldUser, key<&OldUser::id>>;
using Users = table<User, ordered_key<&User::name>>;
struct First {
  OldUsers users;
};
struct Second {
  rebuilt<Users, OldUsers> users;
};

// The third root object is smaller than the second: only the newest layout fits its size.
namespace smaller {
struct Third {
  table<User, ordered_key<&User::name>, indexed<&User::id>> users;
};
}  // namespace smaller

TEST_F(RebuiltHistory, ASmallerRootObjectIsFinishedAfterItWasCutShort) {
  update<First>([](auto& tx, auto& r) {
    for (std::uint64_t i = 0; i < 10; ++i) r.users.insert(tx, {i, std::to_string(i), "x"});
  });
  opens<Second>();
  static_assert(sizeof(smaller::Third) < sizeof(Second));
  cut_short<smaller::Third>(test::small_pool(), 3);
  update<smaller::Third>([](auto& tx, auto& r) {
    EXPECT_EQ(r.users.size(tx), 10U);
    std::uint64_t n = 0;
    for (const User u : r.users.template by<&User::id>(tx, 7)) n += u.id;
    EXPECT_EQ(n, 7U);
  });
}

// Version 4 gives the records a field; those of version 2 are still there.
namespace later {
struct More {
  std::uint64_t id = 0;
  std::string name, nick;
  std::uint32_t more = 5;
};
struct Third {
  Users users;
};
struct Fourth {
  table<More, ordered_key<&More::name>> users;
};
struct Less {
  std::uint64_t id = 0;
  std::string name;
  static constexpr std::string_view perdure_removed[] = {"nick"};
};
struct FourthLess {
  table<Less, ordered_key<&Less::name>> users;
};
struct Again {
  std::uint64_t id = 0;
  std::string name;
  std::uint32_t nick = 0;
  static constexpr std::string_view perdure_removed[] = {"nick"};
};
struct FifthAgain {
  table<Again, ordered_key<&Again::name>> users;
};
struct Orders1 {
  map<std::uint64_t, OldUser> orders;
};
struct Orders2 {
  rebuilt<hash_map<std::uint64_t, User>, map<std::uint64_t, OldUser>> orders;
};
struct Orders3 {
  hash_map<std::uint64_t, User> orders;
};
struct Orders4 {
  hash_map<std::uint64_t, More> orders;
};
}  // namespace later

TEST_F(RebuiltHistory, LaterVersionsAddFieldsToWhatWasRebuilt) {
  update<First>([](auto& tx, auto& r) { r.users.insert(tx, {1, "Ann", "x"}); });
  opens<Second>();
  opens<later::Third>();
  EXPECT_EQ(refusals<later::Fourth>(), Lines{});
  update<later::Fourth>([](auto& tx, auto& r) { EXPECT_EQ(r.users.find(tx, "Ann")->more, 5U); });
}
TEST_F(RebuiltHistory, LaterVersionsAddFieldsToTheValuesOfAMap) {
  update<later::Orders1>([](auto& tx, auto& r) { r.orders.put(tx, 1, {1, "Ann", "x"}); });
  opens<later::Orders2>();
  opens<later::Orders3>();
  EXPECT_EQ(refusals<later::Orders4>(), Lines{});
  update<later::Orders4>([](auto& tx, auto& r) { EXPECT_EQ(r.orders.find(tx, 1)->more, 5U); });
}
TEST_F(RebuiltHistory, ARemovedFieldsNameIsNotTakenAgain) {
  update<First>([](auto& tx, auto& r) { r.users.insert(tx, {1, "Ann", "x"}); });
  opens<Second>();
  opens<later::FourthLess>();
  const Lines found = refusals<later::FifthAgain>();
  ASSERT_FALSE(found.empty());
  for (const std::string& line : found)
    EXPECT_NE(line.find("users.nick: "), std::string::npos) << line;
}

// The same for elements that would be converted without a step.
namespace words {
using Words = map<std::string, std::uint64_t>;
using Word = std::pair<std::string, std::uint64_t>;
struct First {
  Words words;
};
struct Second {
  rebuilt<Words, Words> words;
};
struct Third {
  Words words;
  p<std::uint64_t> third;
};
struct Count {
  std::uint64_t id = 0;
  std::string count;
};
MigrationStep hundredfold() {
  return step<Word, Word>("words", [](const Word& a, Word& b) { b.second = a.second * 100; });
}
}  // namespace words

TEST_F(RebuiltHistory, WhatAStepBeganIsNotFinishedWithoutIt) {
  update<words::First>([](auto& tx, auto& r) {
    for (std::uint64_t i = 0; i < 9; ++i) r.words.put(tx, std::to_string(i), 1);
  });
  cut_short<words::Second>(with({words::hundredfold()}), 4);
  const Status without = Pool<words::Second>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(without.code(), Code::incompatible);
  EXPECT_NE(without.message().find("words: half of it has gone through other steps"),
            std::string::npos)
      << without.message();
  update<words::Second>(
      [](auto& tx, auto& r) {
        r.words.for_each(tx, [](const auto&, std::uint64_t n) { EXPECT_EQ(n, 100U); });
        EXPECT_EQ(r.words.size(tx), 9U);
      },
      with({words::hundredfold()}));
}

TEST_F(RebuiltHistory, AnOlderProgramDoesNotRebuildItAgain) {
  update<words::First>([](auto& tx, auto& r) { r.words.put(tx, "x", 1); });
  opens<words::Second>(with({words::hundredfold()}));
  opens<words::Third>();
  const Status s = Pool<words::Second>::try_open(path, with({words::hundredfold()})).status();
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_NE(s.message().find("a newer version of this program"), std::string::npos) << s.message();
  update<words::Third>([](auto& tx, auto& r) { EXPECT_EQ(r.words.find(tx, "x"), 100U); });
}

TEST_F(RebuiltHistory, AStepThatFitsNoElementIsRefused) {
  update<later::Orders1>([](auto& tx, auto& r) { r.orders.put(tx, 1, {1, "Ann", "x"}); });
  // The values', not the elements'.
  Migration migrate;
  migrate.steps = {step<OldUser, User>("orders", [](const OldUser&, User& b) { b.name = "b"; })};
  const Lines found = refusals<later::Orders2>(migrate);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("orders: its steps do not lead from {first:u64@0,second:"),
            std::string::npos)
      << found[0];
  EXPECT_NE(found[0].find("std::pair<key, value> of a map"), std::string::npos) << found[0];
}

namespace given {
struct Order {
  std::string name;
  static constexpr std::string_view perdure_removed[] = {"nick", "id"};
};
struct Second {
  rebuilt<hash_map<std::uint64_t, Order>, map<std::uint64_t, OldUser>> orders;
};
struct Retired {
  retired<hash_map<std::uint64_t, User>> orders;
};
struct Other {
  rebuilt<hash_map<std::uint64_t, User>, vector<OldUser>> orders;
};
}  // namespace given

TEST_F(RebuiltHistory, AFieldThatAStepReadsIsNotGivenUp) {
  update<later::Orders1>([](auto& tx, auto& r) { r.orders.put(tx, 1, {1, "Ann", "x"}); });
  using Before = std::pair<std::uint64_t, OldUser>;
  using Now = std::pair<std::uint64_t, given::Order>;
  Migration migrate;
  migrate.steps = {step<Before, Now>("orders", [](const Before&, Now&) {})};
  EXPECT_EQ(refusals<given::Second>(migrate),
            (Lines{"orders.id: a step's struct has it, but perdure_removed lists it (take it out "
                   "of perdure_removed: the step decides what becomes of it)",
                   "orders.nick: a step's struct has it, but perdure_removed lists it (take it out "
                   "of perdure_removed: the step decides what becomes of it)"}));
}

TEST_F(RebuiltHistory, TheOldContainerMustBeThePools) {
  update<later::Orders1>([](auto& tx, auto& r) { r.orders.put(tx, 1, {1, "Ann", "x"}); });
  const Lines found = refusals<given::Other>();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("declare the pool's as the second of perdure::rebuilt"),
            std::string::npos)
      << found[0];
}

TEST_F(RebuiltHistory, WhatWasRebuiltCanBeRetired) {
  update<later::Orders1>([](auto& tx, auto& r) { r.orders.put(tx, 1, {1, "Ann", "x"}); });
  opens<later::Orders2>();
  EXPECT_EQ(refusals<given::Retired>(), Lines{});
  auto pool = Pool<given::Retired>::open(path, test::small_pool());
  EXPECT_EQ(pool.check().problems, Lines{});
}

// Keys that are equal by a class's own order, in a key of several parts.
namespace folded {
struct Name {
  std::string text;
  bool operator<(const Name& other) const {
    const auto lower = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) <
             std::tolower(static_cast<unsigned char>(b));
    };
    return std::lexicographical_compare(text.begin(), text.end(), other.text.begin(),
                                        other.text.end(), lower);
  }
};
struct First {
  vector<std::string> names;
};
struct Second {
  rebuilt<map<std::pair<Name, std::uint64_t>, std::uint64_t>, vector<std::string>> names;
};
}  // namespace folded

TEST_F(RebuiltHistory, KeysThatAreEqualByAPartsOwnOrderAreFoundBeforeTheSwitch) {
  update<folded::First>([](auto& tx, auto& r) {
    for (const char* name : {"Ann", "Bob", "ann"}) r.names.push_back(tx, name);
  });
  using Now = std::pair<std::pair<folded::Name, std::uint64_t>, std::uint64_t>;
  const Status s = Pool<folded::Second>::try_open(
                       path, with({step<std::string, Now>(
                                 "names", [](const auto& a, Now& b) { b.first.first.text = a; })}))
                       .status();
  EXPECT_EQ(s.code(), Code::exists) << s.message();
  EXPECT_NE(s.message().find("1 key shares its 'names' with an earlier key"), std::string::npos)
      << s.message();
  opens<folded::First>();
}

namespace numbered {
struct Row {
  std::uint64_t id = 0;
  std::int32_t age = 0;
};
struct WideRow {
  std::uint64_t id = 0;
  std::int64_t age = 0;
};
using Rows = table<Row, key<&Row::id>, indexed<&Row::age>>;
using WideRows = table<WideRow, key<&WideRow::id>, indexed<&WideRow::age>>;
struct First {
  Rows rows;
};
struct Second {
  rebuilt<WideRows, Rows> rows;
};
}  // namespace numbered

TEST_F(RebuiltHistory, ATableGivesNoKeyAgain) {
  update<numbered::First>([](auto& tx, auto& r) {
    for (int i = 0; i < 3; ++i) r.rows.add(tx, {0, i});
    r.rows.erase(tx, 3);
  });
  update<numbered::Second>([](auto& tx, auto& r) { EXPECT_EQ(r.rows.add(tx, {0, 9}), 4U); });
}

namespace large {
struct Before {
  hash_map<std::uint64_t, std::uint64_t> numbers;
};
struct After {
  rebuilt<map<std::uint64_t, std::uint64_t>, hash_map<std::uint64_t, std::uint64_t>> numbers;
};
}  // namespace large

// A map that was large has many empty segments. Transactions of bounded size free them.
TEST_F(RebuiltHistory, AMapThatWasLargeIsEmptiedInBatches) {
  std::uint64_t left = 3;
  {
    auto pool = Pool<large::Before>::open(path, test::small_pool());
    constexpr std::uint64_t many = 100'000;  // of which three stay
    for (std::uint64_t i = 0; i < many; i += 500)
      pool.update([&](auto& tx, large::Before& r) {
        for (std::uint64_t k = i; k < i + 500; ++k) r.numbers.put(tx, k, k);
      });
    for (std::uint64_t i = 0; i < many; i += 500)
      pool.update([&](auto& tx, large::Before& r) {
        for (std::uint64_t k = i; k < i + 500; ++k)
          if (k % 40'000 != 0) r.numbers.erase(tx, k);
      });
    const std::uint64_t before = pool.check().blocks;
    std::uint64_t taken = 0;
    const auto take = [&](std::uint64_t n, bool empty) {
      pool.update([&](auto& tx, large::Before& r) {
        EXPECT_EQ(r.numbers.take_some(tx, n, [&](auto, auto) { ++taken; }), empty);
      });
    };
    take(10, false);
    EXPECT_LE(before - pool.check().blocks, 10U);
    for (int i = 0; i < 3; ++i) take(1, false);
    left -= taken;
  }
  Options options = test::small_pool();
  options.migrate.batch = 100;
  auto pool = Pool<large::After>::open(path, options);
  EXPECT_EQ(pool.view([](auto& tx, const large::After& r) { return r.numbers.size(tx); }), left);
  EXPECT_EQ(pool.check().problems, Lines{});
}

// clear_some() returns on such a map whether it is empty, as elsewhere.
TEST_F(RebuiltHistory, ClearSomeSaysWhetherTheMapIsEmpty) {
  update<large::Before>([](auto& tx, auto& r) {
    EXPECT_TRUE(r.numbers.clear_some(tx, 0));
    for (std::uint64_t k = 0; k < 5; ++k) r.numbers.put(tx, k, k);
    EXPECT_FALSE(r.numbers.clear_some(tx, 3));
    EXPECT_EQ(r.numbers.size(tx), 2U);
    EXPECT_TRUE(r.numbers.clear_some(tx, 2));
    r.numbers.put(tx, 1, 1);
    r.numbers.erase(tx, 1);
    EXPECT_TRUE(r.numbers.clear_some(tx, 0));
  });
}

// A step of an earlier version may stay where the next one is rebuilt without one.
namespace kept {
struct First {
  table<words::Count, key<&words::Count::id>> users;
};
struct Second {
  table<User, key<&User::id>> users;
};
struct Third {
  rebuilt<Users, table<User, key<&User::id>>> users;
};
}  // namespace kept

TEST_F(RebuiltHistory, AStepOfAnEarlierVersionMayStay) {
  update<kept::First>([](auto& tx, auto& r) { r.users.insert(tx, {1, "seven"}); });
  const auto steps = with({step<words::Count, User>(
      "users", [](const words::Count& a, User& b) { b.name = a.count; })});
  opens<kept::Second>(steps);
  EXPECT_EQ(refusals<kept::Third>(steps.migrate), Lines{});
  update<kept::Third>([](auto& tx, auto& r) { EXPECT_TRUE(r.users.find(tx, "seven")); }, steps);
}

// If a change began without a step, it must not be finished with one: a part of the elements would
// not have gone through the step.
TEST_F(RebuiltHistory, WhatBeganWithoutAStepIsNotFinishedWithOne) {
  update<words::First>([](auto& tx, auto& r) {
    for (std::uint64_t i = 0; i < 9; ++i) r.words.put(tx, std::to_string(i), 1);
  });
  cut_short<words::Second>(test::small_pool(), 4);
  const Status s = Pool<words::Second>::try_open(path, with({words::hundredfold()})).status();
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_NE(s.message().find("words: half of it has gone through other steps"), std::string::npos)
      << s.message();
  {
    test::DumpedPool pool(path);
    EXPECT_TRUE(pool.unfinished());
  }
  update<words::Second>([](auto& tx, auto& r) { EXPECT_EQ(r.words.find(tx, "3"), 1U); });
  test::DumpedPool pool(path);
  EXPECT_FALSE(pool.unfinished());
}

// Version 1 has the same root struct as a version 3 with the new container alone would have.
TEST_F(RebuiltHistory, TheProgramBeforeDoesNotTakeItBack) {
  update<words::First>([](auto& tx, auto& r) { r.words.put(tx, "x", 1); });
  opens<words::Second>(with({words::hundredfold()}));
  const Status s = Pool<words::First>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_NE(s.message().find("words: a later version has rebuilt it"), std::string::npos)
      << s.message();
  update<words::Second>([](auto& tx, auto& r) { EXPECT_EQ(r.words.find(tx, "x"), 100U); });
}

// If a step writes a row's key in another way, the row's own old entry does not count as another
// row's.
namespace folded {
struct Person {
  Name name;
  std::string text;
};
struct Loud {
  Name name;
  std::string shout;
};
struct People {
  table<Person, ordered_key<&Person::name>> people;
};
struct LoudPeople {
  table<Loud, ordered_key<&Loud::name>> people;
};
}  // namespace folded

TEST_F(RebuiltHistory, AStepMayWriteAKeyInAnotherWay) {
  update<folded::People>([](auto& tx, auto& r) {
    r.people.insert(tx, {{"Ann"}, "x"});
    r.people.insert(tx, {{"Bob"}, "y"});
  });
  const Options options = with(
      {step<folded::Person, folded::Loud>("people", [](const folded::Person& a, folded::Loud& b) {
        b.shout = a.text + "!";
        for (char& c : b.name.text) c = static_cast<char>(std::toupper(c));
      })});
  update<folded::LoudPeople>(
      [](auto& tx, auto& r) {
        EXPECT_EQ(r.people.find(tx, folded::Name{"ann"})->name.text, "ANN");
        EXPECT_EQ(r.people.find(tx, folded::Name{"BOB"})->shout, "y!");
      },
      options);
}

}  // namespace
}  // namespace perdure
