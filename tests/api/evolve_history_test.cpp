// SPDX-License-Identifier: BSD-3-Clause
//
// Version 3 of a program: what it must declare for the records of all earlier versions,
// perdure_renamed that leads through several versions or in two directions, and damaged layout
// texts.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "perdure/evolve/step.hpp"
#include "perdure/perdure.h"
#include "perdure/perdure.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/value/shapes.hpp"
#include "tests/api/small_pool.hpp"
#include "tests/api/versions.hpp"

namespace perdure {
namespace {

using Lines = std::vector<std::string>;

class History : public test::Versions {
 protected:
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(std::string_view found, std::string_view by) const {
    const std::size_t at = bytes().find(found);
    ASSERT_NE(at, std::string::npos);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(by.data(), static_cast<std::streamsize>(by.size()));
  }
};

namespace user1 {
struct User {
  std::uint64_t id = 0;
  std::string b;
};
struct Root {
  table<User, key<&User::id>> users;
};
}  // namespace user1
namespace user2 {  // b is gone
struct User {
  std::uint64_t id = 0;
  std::string n;
  static constexpr std::string_view perdure_removed[] = {"b"};
};
struct Root {
  table<User, key<&User::id>> users;
};
}  // namespace user2
namespace user3 {  // another b, by which rows are found
struct User {
  std::uint64_t id = 0;
  std::string n;
  std::uint32_t b = 0;
};
struct Root {
  table<User, key<&User::id>, indexed<&User::b>> users;
};
}  // namespace user3
namespace forgot {  // as user2, without its list
struct User {
  std::uint64_t id = 0;
  std::string n;
};
struct Root {
  table<User, key<&User::id>, indexed<&User::n>> users;
};
}  // namespace forgot

TEST_F(History, RowsOfAnEarlierVersionThatCannotBeReadAreRefusedBeforeTheSwitch) {
  update<user1::Root>([](auto& tx, auto& root) { root.users.put(tx, {1, "text"}); });
  opens<user2::Root>();
  ASSERT_EQ(refusals<user3::Root>().size(), 2U);
  EXPECT_NE(refusals<user3::Root>()[1].find("users.b: an earlier version had a field of this name"),
            std::string::npos);
  EXPECT_NE(refusals<user3::Root>()[0].find("users.b: found 'string' in the pool, expected 'u32', "
                                            "in records of an earlier version"),
            std::string::npos)
      << refusals<user3::Root>()[0];
  ASSERT_EQ(refusals<forgot::Root>().size(), 1U);
  EXPECT_NE(refusals<forgot::Root>()[0].find("users.b: found in the pool, not in the program, in "
                                             "records of an earlier version (name it in "
                                             "perdure_renamed"),
            std::string::npos)
      << refusals<forgot::Root>()[0];
  EXPECT_EQ(Pool<user3::Root>::try_open(path, test::small_pool()).status().code(),
            Code::incompatible);
  update<user2::Root>([](auto& tx, auto& root) { EXPECT_EQ(root.users.find(tx, 1)->n, ""); });
}

TEST_F(History, AStepOfAnEarlierVersionsRowsIsTaken) {
  update<user1::Root>([](auto& tx, auto& root) { root.users.put(tx, {1, "text"}); });
  update<user2::Root>([](auto& tx, auto& root) { root.users.put(tx, {2, "two"}); });
  int calls = 0;
  Options options = test::small_pool();
  options.migrate.steps = {
      step<user1::User, user3::User>("users", [&](const user1::User& was, user3::User& now) {
        ++calls;
        now.b = static_cast<std::uint32_t>(was.b.size());
      })};
  EXPECT_EQ(refusals<user3::Root>(options.migrate), Lines{});
  update<user3::Root>(
      [](auto& tx, auto& root) {
        EXPECT_EQ(root.users.find(tx, 1)->b, 4U);
        EXPECT_EQ(root.users.find(tx, 2)->n, "two");
      },
      options);
  EXPECT_EQ(calls, 2) << "to compare keys before the switch, and to rewrite the row after it";
  // No row of version 1 is left, so the program no longer has to be able to read one.
  opens<user3::Root>();
  EXPECT_EQ(refusals<user3::Root>(), Lines{});
}

namespace same3 {  // the names of user2, and no step at first
struct User {
  std::uint64_t id = 0;
  std::string n;
  std::uint64_t length = 0;
  static constexpr std::string_view perdure_removed[] = {"b"};
};
struct Root {
  table<User, key<&User::id>> users;
};
struct WithStep {
  std::uint64_t id = 0;
  std::string n;
  std::uint64_t length = 0;
};
struct RootWithStep {
  table<WithStep, key<&WithStep::id>> users;
};
}  // namespace same3

TEST_F(History, AStepThatCameLateIsTakenByTheRowsThatAreLeft) {
  update<user1::Root>([](auto& tx, auto& root) {
    root.users.put(tx, {1, "text"});
    root.users.put(tx, {2, "texts"});
  });
  update<same3::Root>([](auto& tx, auto& root) {
    root.users.update(tx, std::uint64_t{2}, [](auto& row) { row.length = 77; });
  });
  Options options = test::small_pool();
  options.migrate.steps = {step<user1::User, same3::WithStep>(
      "users", [](const user1::User& was, same3::WithStep& now) { now.length = was.b.size(); })};
  for (int opening = 0; opening < 2; ++opening)
    update<same3::RootWithStep>(
        [](auto& tx, auto& root) {
          EXPECT_EQ(root.users.find(tx, 1)->length, 4U);
          EXPECT_EQ(root.users.find(tx, 2)->length, 77U);
        },
        options);
  EXPECT_EQ(refusals<same3::RootWithStep>(), Lines{});
}

namespace quota1 {
struct User {
  std::string n;
  std::uint32_t quota = 0;
};
struct Root {
  map<std::uint64_t, User> users;
};
}  // namespace quota1
namespace quota2 {
struct User {
  std::string n;
  static constexpr std::string_view perdure_removed[] = {"quota"};
};
struct Root {
  map<std::uint64_t, User> people;
  static constexpr renamed perdure_renamed[] = {{"people", "users"}};
};
}  // namespace quota2
namespace quota3 {
struct User {
  std::string n;
  std::uint32_t quota = 100;
  static constexpr std::string_view perdure_removed[] = {"quota"};
};
struct Root {
  map<std::uint64_t, User> people;
};
}  // namespace quota3

TEST_F(History, ARemovedFieldsNameIsNotTakenAgainWhileItsRecordsMayBeThere) {
  update<quota1::Root>([](auto& tx, auto& root) { root.users.put(tx, 1, {"x", 7}); });
  opens<quota2::Root>();
  EXPECT_EQ(refusals<quota3::Root>(),
            Lines{"people.quota: an earlier version had a field of this name, removed since, and "
                  "its records may still be there (take a name that no version had)"});
}

namespace one {
struct Root {
  p<std::uint64_t> a;
};
}  // namespace one
namespace stale {
struct Root {
  p<std::uint64_t> c{3}, b{2};
  static constexpr renamed perdure_renamed[] = {{"b", "a"}, {"c", "b"}};
};
}  // namespace stale
namespace over {
struct Root {
  p<std::uint64_t> c{3};
  static constexpr renamed perdure_renamed[] = {{"b", "a"}, {"c", "b"}};
};
}  // namespace over
namespace two {
struct Root {
  p<std::uint64_t> a, b;
};
}  // namespace two

TEST_F(History, ARenamingMayLeadOverANameThatThePoolNeverHad) {
  update<one::Root>([](auto& tx, auto& root) { tx(root.a) = 77; });
  update<over::Root>([](auto& tx, auto& root) { EXPECT_EQ(tx.read(root.c), 77U); });
}
TEST_F(History, AFieldThatTwoAreSaidToHaveBeenIsRefused) {
  update<one::Root>([](auto& tx, auto& root) { tx(root.a) = 77; });
  EXPECT_EQ(
      refusals<stale::Root>(),
      Lines{"a: by perdure_renamed both b and c were it: leave it out of one field's names; a "
            "field that is new has no earlier name (nothing was changed)"});
  update<one::Root>([](auto& tx, auto& root) { EXPECT_EQ(tx.read(root.a), 77U); });
}
TEST_F(History, FieldsMayTakeOneAnothersNames) {
  update<two::Root>([](auto& tx, auto& root) {
    tx(root.a) = 1;
    tx(root.b) = 2;
  });
  update<stale::Root>([](auto& tx, auto& root) {
    EXPECT_EQ(tx.read(root.b), 1U);
    EXPECT_EQ(tx.read(root.c), 2U);
  });
}

namespace alike1 {
struct Pair {
  std::string user, s;
};
struct Root {
  map<std::uint64_t, Pair> a, b;
};
}  // namespace alike1
namespace alike2 {
struct Said {
  std::string owner, s;
  static constexpr renamed perdure_renamed[] = {{"owner", "user"}};
};
struct Silent {
  std::string owner, s;
};
struct Root {
  map<std::uint64_t, Said> a;
  map<std::uint64_t, Silent> b;
};
}  // namespace alike2

TEST_F(History, TwoStructsOfOneTextSayTheSame) {
  opens<alike1::Root>();
  ASSERT_EQ(refusals<alike2::Root>().size(), 1U);
  EXPECT_NE(refusals<alike2::Root>()[0].find("two structs of the program have the fields "
                                             "{owner:string@0,s:string@8}16, but different "
                                             "perdure_renamed or perdure_removed (give both"),
            std::string::npos)
      << refusals<alike2::Root>()[0];
}

namespace wide1 {
struct Root {
  p<std::uint32_t> x, pad_aaaa;
};
}  // namespace wide1
namespace wide2 {
struct Root {
  p<std::uint64_t> x;
  static constexpr std::string_view perdure_removed[] = {"pad_a", "pad_aaaa", "pad_aaa"};
};
}  // namespace wide2

TEST_F(History, ADamagedLayoutTextIsRefused) {
  constexpr std::string_view whole = "x: u32 @0 4\npad_aaaa: u32 @4 4\n";
  for (const std::string_view damaged :
       {"x: u32 @0 4000\npad_a: u32 @4 4\n", "x: u32 @4000 4\npad_a: u32 @4 4\n",
        "x: u32 @0 0\npad_aaaa: u32 @4 4\n", "x: u32 @0 8\npad_aaaa: u32 @0 8\n",
        "x: u7 @0 4\npad_aaaaa: u32 @4 4\n"}) {
    ASSERT_EQ(damaged.size(), whole.size());
    std::filesystem::remove(path);
    opens<wide1::Root>();
    replace(whole, damaged);
    EXPECT_FALSE(Pool<wide2::Root>::try_open(path, test::small_pool()).ok()) << damaged;
    replace(damaged, whole);
    opens<wide2::Root>();
  }
}

namespace large {
constexpr std::size_t words = 2 << 20;
struct Before {
  p<std::uint64_t> x;
  std::array<p<std::uint64_t>, words> a;
};
struct After {
  p<std::uint64_t> y, x;
  std::array<p<std::uint64_t>, words> a;
};
}  // namespace large

TEST_F(History, ALargeRootObjectNeedsNoLogOfItsSize) {
  static_assert(sizeof(large::Before) > 16 << 20);
  update<large::Before>([](auto& tx, auto& root) {
    tx(root.x) = 5;
    tx(root.a[large::words - 1]) = 6;
  });
  update<large::After>([](auto& tx, auto& root) {
    EXPECT_EQ(tx.read(root.x), 5U);
    EXPECT_EQ(tx.read(root.a[large::words - 1]), 6U);
    EXPECT_EQ(tx.read(root.a[0]), 0U);
  });
}

namespace mail1 {
struct User {
  std::uint64_t id = 0;
  std::string mail;
};
struct Root {
  table<User, key<&User::id>> users;
};
}  // namespace mail1
namespace mail2 {
struct Root {
  p<std::uint64_t> more;
  table<mail1::User, key<&mail1::User::id>, unique<&mail1::User::mail>> users;
};
}  // namespace mail2

TEST_F(History, ARefusedOpeningLeavesWhatTheHeaderSays) {
  update<mail1::Root>([](auto& tx, auto& root) {
    root.users.put(tx, {1, "same"});
    root.users.put(tx, {2, "same"});
  });
  const auto status = Pool<mail2::Root>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(status.code(), Code::exists) << status.message();
  pool::Header header;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
  EXPECT_EQ(pool::layout_text(header), layout_of<mail1::Root>());
  EXPECT_EQ(pool::field_names_text(header), field_names_of<mail1::Root>());
}

TEST_F(History, AProgramInCDoesNotChangeALayout) {
  perdure_options options{};
  options.layout = "u32";
  options.root_bytes = 4;
  perdure_pool* pool = nullptr;
  ASSERT_EQ(perdure_open(path.c_str(), &options, &pool), 0);
  perdure_close(pool, nullptr);
  options.layout = "u64";
  options.root_bytes = 8;
  pool = nullptr;
  EXPECT_NE(perdure_open(path.c_str(), &options, &pool), 0);
  EXPECT_NE(std::string(perdure_message())
                .find("a pool of another version of its program: 0: u32 becomes u64"),
            std::string::npos)
      << perdure_message();
  options.layout = "u32";
  options.root_bytes = 128;
  EXPECT_NE(perdure_open(path.c_str(), &options, &pool), 0);
  EXPECT_NE(std::string(perdure_message()).find("u32 of 4 bytes, the program u32 of 128 bytes"),
            std::string::npos)
      << perdure_message();
  options.root_bytes = 4;
  ASSERT_EQ(perdure_open(path.c_str(), &options, &pool), 0) << perdure_message();
  perdure_close(pool, nullptr);
}

TEST_F(History, AChildReadsOldRecordsThoughTheParentWasReading) {
  update<user1::Root>([](auto& tx, auto& root) { root.users.put(tx, {1, "text"}); });
  auto pool = Pool<user2::Root>::open(path, test::small_pool());
  std::atomic<bool> stop{false};
  // Opening another pool takes the lock of the table of shapes again and again.
  medium::testing::Scratch other;
  std::thread opener([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      std::filesystem::remove(other.path());
      { (void)Pool<user1::Root>::try_open(other.path(), test::small_pool()); }
      (void)migration_plan<user2::Root>(other.path());
      (void)Pool<user2::Root>::try_open(other.path(), test::small_pool());
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      // The parent's pool may not be used here, but the table of shapes may.
      ::alarm(20);
      ::_exit(value::shapes::find(12345) == nullptr ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a child waits for ever, or found an unknown shape";
  }
  stop.store(true, std::memory_order_relaxed);
  opener.join();
}

}  // namespace
}  // namespace perdure
