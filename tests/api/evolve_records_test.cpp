// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a program whose plain structs in containers have changed: nothing is converted when
// the pool is opened, old records are read by the names of their fields, and all refusals are named
// at once.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/inspect/blocks.hpp"
#include "perdure/inspect/source.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tests/api/small_pool.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

using Lines = std::vector<std::string>;

namespace v1 {
struct Phone {
  std::string number;
  std::uint8_t kind = 0;
};
struct Person {
  std::uint64_t id = 0;
  std::string user, notes;
  std::uint32_t logins = 0;
  std::vector<Phone> phones;
  std::string city;
};
struct Shelf {
  map<std::uint64_t, Person> people;
};
struct Root {
  map<std::uint64_t, Person> by_id;
  hash_map<std::string, Person> by_name;
  vector<Person> row;
  list<Person> chain;
  queue<Person> waiting;
  box<Person> owner;
  map<std::string, Shelf> shelves;
  table<Person, key<&Person::id>, indexed<&Person::user>> people;
};
}  // namespace v1

namespace v2 {
struct Phone {
  std::uint16_t kind = 0;
  std::string number;
  std::string country = "none";
};
struct Person {
  std::string owner;  // user, in version 1
  std::uint64_t id = 0;
  double rank = 1.5;
  std::int64_t logins = 0;
  std::vector<Phone> phones;
  std::optional<std::string> city;
  static constexpr renamed perdure_renamed[] = {{"owner", "user"}};
  static constexpr std::string_view perdure_removed[] = {"notes"};
};
struct Shelf {
  map<std::uint64_t, Person> people;
};
struct Root {
  p<std::uint64_t> added{7};
  map<std::uint64_t, Person> by_id;
  hash_map<std::string, Person> by_name;
  vector<Person> row;
  list<Person> chain;
  queue<Person> waiting;
  box<Person> owner;
  map<std::string, Shelf> shelves;
  table<Person, key<&Person::id>, indexed<&Person::owner>, indexed<&Person::rank>> people;
};
}  // namespace v2

namespace v3 {  // and once more: records of version 1 are still there
struct Person {
  std::uint64_t id = 0;
  std::string holder;
  double rank = 2.5;
  std::int64_t logins = 0;
  std::vector<v2::Phone> phones;
  std::optional<std::string> city;
  std::uint64_t since = 2030;
  static constexpr renamed perdure_renamed[] = {{"holder", "owner"}, {"holder", "user"}};
  static constexpr std::string_view perdure_removed[] = {"notes"};
};
struct Root {
  p<std::uint64_t> added;
  map<std::uint64_t, Person> by_id;
  retired<hash_map<std::string, v2::Person>> by_name;
  vector<Person> row;
  list<Person> chain;
  queue<Person> waiting;
  box<Person> owner;
  map<std::string, v2::Shelf> shelves;
  table<Person, key<&Person::id>, indexed<&Person::holder>, indexed<&Person::rank>> people;
};
}  // namespace v3

constexpr std::uint64_t many = 300;

v1::Person old(std::uint64_t i) {
  return {i,
          "user " + std::to_string(i % 7),
          "notes that are dropped",
          static_cast<std::uint32_t>(i * 3),
          {{std::to_string(i), 2}, {"second", 3}},
          "city " + std::to_string(i)};
}

class EvolveRecords : public ::testing::Test {
 protected:
  void fill() const {
    auto pool = Pool<v1::Root>::open(path, test::small_pool());
    pool.update([&](auto& tx, v1::Root& r) {
      r.owner.put(tx, old(1));
      r.shelves.upsert(tx, "first", [](v1::Shelf&) {});
      for (std::uint64_t i = 0; i < many; ++i) {
        r.by_id.put(tx, i, old(i));
        r.by_name.put(tx, std::to_string(i), old(i));
        r.row.push_back(tx, old(i));
        r.chain.push_back(tx, old(i));
        r.waiting.push(tx, old(i));
        r.people.insert(tx, old(i));
        r.shelves.update(tx, "first", [&](v1::Shelf& s) { s.people.put(tx, i, old(i)); });
      }
    });
  }
  template <class Root>
  Status opens() const {
    return Pool<Root>::try_open(path, test::small_pool()).status();
  }
  template <class Root>
  Lines refusals() const {
    return migration_plan<Root>(path).value().refusals;
  }

  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

/// The faults that a walk by the catalog's texts finds, and the number of blocks.
template <class Root>
std::pair<Lines, std::uint64_t> walked(Pool<Root>& pool) {
  pool::OpenPool& file = pool.file();
  const auto catalog = pool::read_catalog(file.path(), file.header(), file.view()).value();
  inspect::Blocks found;
  pool.view([&](auto& tx, const Root&) {
    value::ReaderOver<std::remove_reference_t<decltype(tx)>> reader(tx);
    inspect::Walker walker(reader, reinterpret_cast<inspect::Address>(file.view()),
                           file.data_bytes());
    const inspect::Source source = inspect::read_source(walker, file.header(), catalog);
    walker.use_records_of(source.tree);
    found = inspect::find_blocks(walker, source.tree.root(), source.root);
  });
  found.problems.insert(found.problems.end(), found.unknown.begin(), found.unknown.end());
  return {found.problems, found.offsets.size() + 1 + catalog.blocks.size()};
}

// Checks a record of version 1 as version 2 reads it.
void expect_old(const std::optional<v2::Person>& p, std::uint64_t i) {
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->id, i);
  EXPECT_EQ(p->owner, old(i).user);
  EXPECT_EQ(p->rank, 1.5);
  EXPECT_EQ(p->logins, static_cast<std::int64_t>(i) * 3);
  EXPECT_EQ(p->city, old(i).city);
  ASSERT_EQ(p->phones.size(), 2U);
  EXPECT_EQ(p->phones[0].number, std::to_string(i));
  EXPECT_EQ(p->phones[0].kind, 2);
  EXPECT_EQ(p->phones[1].country, "none");
}

TEST_F(EvolveRecords, OldRecordsAreReadAndRewrittenInEveryContainer) {
  fill();
  auto pool = Pool<v2::Root>::open(path, test::small_pool());
  EXPECT_EQ(pool.check().problems, Lines{});
  pool.view([&](auto& tx, const v2::Root& r) {
    EXPECT_EQ(tx.read(r.added), 7U);
    expect_old(r.owner.get(tx), 1);
    for (std::uint64_t i = 0; i < many; ++i) {
      expect_old(r.by_id.find(tx, i), i);
      expect_old(r.by_name.find(tx, std::to_string(i)), i);
      expect_old(r.row.get(tx, i), i);
      expect_old(r.people.find(tx, i), i);
      expect_old(r.shelves.find(tx, "first")->people.find(tx, i), i);
    }
    std::uint64_t n = 0;
    r.chain.for_each(tx, [&](const v2::Person& p) { expect_old(p, n++); });
    EXPECT_EQ(n, many);
    n = 0;
    for (const v2::Person p : r.people.by<&v2::Person::owner>(tx, "user 3")) {
      expect_old(p, p.id);
      ++n;
    }
    EXPECT_EQ(n, (many + 3) / 7);
    n = 0;
    for (const v2::Person p : r.people.by<&v2::Person::rank>(tx, 1.5)) n += p.rank == 1.5 ? 1U : 0U;
    EXPECT_EQ(n, many);
  });
  // Half of the records are rewritten, so the container has records of two shapes.
  pool.update([&](auto& tx, v2::Root& r) {
    for (std::uint64_t i = 0; i < many; i += 2) {
      const auto change = [&](v2::Person& p) {
        p.rank = 9;
        p.phones.push_back({5, "third", "de"});
      };
      EXPECT_TRUE(r.by_id.update(tx, i, change));
      EXPECT_TRUE(r.by_name.update(tx, std::to_string(i), change));
      EXPECT_TRUE(r.people.update(tx, i, change));
      EXPECT_TRUE(r.people.erase(tx, i + 1));
    }
  });
  const CheckReport report = pool.check();
  EXPECT_EQ(report.problems, Lines{});
  EXPECT_EQ(walked(pool), std::pair(Lines{}, report.reachable));
  pool.view([&](auto& tx, const v2::Root& r) {
    EXPECT_EQ(r.by_id.find(tx, 2)->rank, 9);
    EXPECT_EQ(r.by_id.find(tx, 2)->phones.size(), 3U);
    expect_old(r.by_id.find(tx, 3), 3);
    std::uint64_t n = 0;
    for (const v2::Person p : r.people.by<&v2::Person::rank>(tx, 9)) n += p.rank == 9 ? 1U : 0U;
    EXPECT_EQ(n, many / 2);
    EXPECT_EQ(r.people.audit(tx), Lines{});
  });
}

TEST_F(EvolveRecords, AThirdVersionReadsTheRecordsOfTheFirst) {
  fill();
  {
    auto pool = Pool<v2::Root>::open(path, test::small_pool());
    pool.update(
        [&](auto& tx, v2::Root& r) { r.by_id.update(tx, 4, [](v2::Person& p) { p.rank = 4; }); });
  }
  {
    auto pool = Pool<v3::Root>::open(path, test::small_pool());
    EXPECT_EQ(pool.check().problems, Lines{});
    pool.view([&](auto& tx, const v3::Root& r) {
      EXPECT_EQ(r.by_id.find(tx, 4)->rank, 4);
      EXPECT_EQ(r.by_id.find(tx, 4)->since, 2030U);
      EXPECT_EQ(r.by_id.find(tx, 5)->rank, 2.5);
      EXPECT_EQ(r.by_id.find(tx, 5)->holder, old(5).user);
      EXPECT_EQ(r.people.find(tx, 6)->holder, old(6).user);
      EXPECT_EQ(r.people.audit(tx), Lines{});
    });
    pool.update([&](auto& tx, v3::Root& r) {
      r.by_id.clear(tx);
      r.row.clear(tx);
      r.chain.clear(tx);
      while (!r.waiting.empty(tx)) r.waiting.pop(tx);
      r.owner.clear(tx);
      r.shelves.clear(tx);
      r.people.clear(tx);
    });
    const CheckReport report = pool.check();
    EXPECT_EQ(report.problems, Lines{});
  }
  EXPECT_EQ(opens<v2::Root>().code(), Code::incompatible);
  EXPECT_EQ(opens<v1::Root>().code(), Code::incompatible);
  EXPECT_TRUE(opens<v3::Root>().ok());
}

TEST_F(EvolveRecords, AnOlderProgramIsRefusedWithWhatItWouldLose) {
  fill();
  ASSERT_TRUE(opens<v2::Root>().ok());
  const Status s = opens<v1::Root>();
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_NE(s.message().find("a newer version of this program has taken over"), std::string::npos)
      << s.message();
  EXPECT_NE(s.message().find("people.rank: found in the pool, not in the program"),
            std::string::npos)
      << s.message();
  EXPECT_NE(s.message().find("people.phones[].country: found in the pool"), std::string::npos)
      << s.message();
  EXPECT_TRUE(opens<v2::Root>().ok());
}

namespace bad {
struct Person {
  std::string id;  // a number, before
  std::string user;
  std::uint16_t logins = 0;  // narrower
  std::vector<v1::Phone> phones;
  std::string city;
};
struct Root {  // notes are gone, too
  map<std::uint64_t, Person> by_id;
  hash_map<std::string, v1::Person> by_name;
  vector<v1::Person> row;
  list<v1::Person> chain;
  queue<v1::Person> waiting;
  box<v1::Person> owner;
  map<std::string, v1::Shelf> shelves;
  table<Person, key<&Person::id>, indexed<&Person::user>> people;
};
}  // namespace bad

TEST_F(EvolveRecords, AllRefusalsAreNamedAtOnce) {
  fill();
  const Lines found = refusals<bad::Root>();
  const auto has = [&](std::string_view begin) {
    for (const std::string& line : found)
      if (line.starts_with(begin)) return true;
    return false;
  };
  for (const std::string_view where : {"by_id", "people"}) {
    EXPECT_TRUE(has(std::string(where) + ".id: found 'u64' in the pool, expected 'string'"));
    EXPECT_TRUE(has(std::string(where) + ".logins: found 'u32' in the pool, expected 'u16'"));
    EXPECT_TRUE(has(std::string(where) + ".notes: found in the pool, not in the program"));
  }
  EXPECT_TRUE(has("people: the members of 'key id' have other types"));
  EXPECT_EQ(found.size(), 7U) << ::testing::PrintToString(found);
  EXPECT_TRUE(opens<v1::Root>().ok()) << "the refusals changed something";
}

namespace wide {
struct Row {
  std::uint64_t id = 0;
  std::uint32_t age = 0;
};
struct WideRow {
  std::uint64_t id = 0;
  std::uint64_t age = 0;
};
struct Root {
  table<Row, key<&Row::id>> rows;
};
struct Indexed {
  table<Row, key<&Row::id>, indexed<&Row::age>> rows;
};
struct WideIndexed {
  table<WideRow, key<&WideRow::id>, indexed<&WideRow::age>> rows;
};
}  // namespace wide

// The entries of an index hold the member's bytes, so an indexed member can't become wider. A new
// index may be over the wider member.
TEST_F(EvolveRecords, AnIndexedMemberKeepsItsType) {
  {
    auto pool = Pool<wide::Root>::open(path, test::small_pool());
    pool.update([](auto& tx, wide::Root& r) { r.rows.insert(tx, {1, 30}); });
  }
  const std::string copy = path + ".copy";
  std::filesystem::copy_file(path, copy);
  ASSERT_TRUE(opens<wide::Indexed>().ok());
  EXPECT_EQ(refusals<wide::WideIndexed>(),
            Lines{"rows: the members of 'index age' have other types (to make it from the pool's, "
                  "declare it as perdure::rebuilt<the program's, the pool's> in one version)"});
  auto pool = Pool<wide::WideIndexed>::open(copy, test::small_pool());
  pool.view([](auto& tx, const wide::WideIndexed& r) {
    std::uint64_t n = 0;
    for (const wide::WideRow row : r.rows.by<&wide::WideRow::age>(tx, 30)) n += row.id;
    EXPECT_EQ(n, 1U);
  });
  EXPECT_EQ(pool.check().problems, Lines{});
}

// What an opening logs after a field was added to a row does not depend on the number of rows.
TEST_F(EvolveRecords, AFieldOfARowCostsTheSameHoweverManyRowsThereAre) {
  struct Before {
    table<wide::Row, key<&wide::Row::id>> rows;
  };
  struct Row {
    std::uint64_t id = 0;
    std::uint32_t age = 0;
    std::string name = "none";
  };
  struct After {
    table<Row, key<&Row::id>> rows;
  };
  std::vector<std::uint64_t> logged;
  for (const std::uint64_t rows : {10U, 10'000U}) {
    std::filesystem::remove(path);
    {
      auto pool = Pool<Before>::open(path, test::small_pool());
      for (std::uint64_t from = 0; from < rows; from += 500)
        pool.update([&](auto& tx, Before& r) {
          for (std::uint64_t i = from; i < std::min(rows, from + 500); ++i)
            r.rows.insert(tx, {i, static_cast<std::uint32_t>(i)});
        });
      pool.close();
    }
    auto pool = Pool<After>::open(path, test::small_pool());
    logged.push_back(pool.stats().log_bytes);
    EXPECT_EQ(pool.view([](auto& tx, const After& r) { return r.rows.find(tx, 9)->name; }), "none");
  }
  EXPECT_EQ(logged[0], logged[1]);
  EXPECT_LT(logged[0], 4096U);
}

// The first change of an old row moves it: a row_ref that was taken before leads to the new
// address, too (ROW-1).
TEST_F(EvolveRecords, ARowThatMovesIsFollowed) {
  struct Before {
    table<wide::Row, key<&wide::Row::id>, indexed<&wide::Row::age>> rows;
  };
  struct Row {
    std::uint64_t id = 0;
    std::uint32_t age = 0;
    std::string name = "none";
    std::array<std::uint64_t, 40> more{};
  };
  struct After {
    table<Row, key<&Row::id>, indexed<&Row::age>> rows;
  };
  {
    auto pool = Pool<Before>::open(path, test::small_pool());
    pool.update([&](auto& tx, Before& r) {
      for (std::uint64_t i = 0; i < 200; ++i) r.rows.insert(tx, {i, 5});
    });
  }
  auto pool = Pool<After>::open(path, test::small_pool());
  pool.update([](auto& tx, After& r) {
    const auto first = *r.rows.at(tx, 0);
    EXPECT_EQ(first->name, "none");
    for (auto row : r.rows.template by<&Row::age>(tx, 5)) {
      const auto same = row;
      r.rows.update(tx, row, [](Row& now) { now.name = "new " + std::to_string(now.id); });
      r.rows.update(tx, same, [](Row& now) { now.age += 1; });
      EXPECT_EQ(row->name, "new " + std::to_string(same[&Row::id]));
      if (row->id % 2 == 1) r.rows.erase(tx, row);
    }
    EXPECT_EQ(first[&Row::name], "new 0");
    EXPECT_EQ(first->age, 6U);
    EXPECT_EQ(r.rows.size(tx), 100U);
    EXPECT_TRUE(r.rows.audit(tx).empty());
  });
  EXPECT_TRUE(pool.check().ok());
}

}  // namespace
}  // namespace perdure
