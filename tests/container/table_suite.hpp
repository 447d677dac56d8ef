// SPDX-License-Identifier: BSD-3-Clause
//
// The table's suite: random transactions on a table with a part of each kind, compared with a list
// of rows.
//
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>

#include "perdure/container/rb_tree.hpp"
#include "perdure/container/set.hpp"
#include "perdure/container/table.hpp"
#include "tests/container/suite.hpp"

namespace perdure::test {

struct Session {
  std::string token;
  std::uint64_t user = 0;
  std::int32_t price = 0;
  std::optional<std::string> mail{};
  std::vector<std::string> roles{};
  std::chrono::sys_seconds until{};
  double unindexed = 0;
  friend bool operator==(const Session&, const Session&) = default;
};
using Sessions =
    table<Session, key<&Session::token>, indexed<&Session::user>,
          indexed_descending<&Session::price>, unique<&Session::mail>, expires<&Session::until>>;
struct Order {
  std::pair<std::int16_t, std::string> id;
  std::string owner;
  friend bool operator==(const Order&, const Order&) = default;
};
using Orders = table<Order, ordered_key<&Order::id>, indexed<&Order::owner>>;

/// Rows, oldest first.
using SessionModel = std::vector<Session>;

inline Session some_session(Random& r) {
  const std::uint64_t i = below(r, 90);
  return {.token = Sample<std::string>::of(i),
          .user = below(r, 6),
          .price = static_cast<std::int32_t>(below(r, 5)) - 2,
          .mail = below(r, 3) == 0 ? std::nullopt
                                   : std::optional(Sample<std::string>::of(below(r, 400))),
          .roles = std::vector<std::string>(below(r, 3), "a role with a block of its own"),
          .until = std::chrono::sys_seconds(std::chrono::seconds(below(r, 50))),
          .unindexed = 0};
}
/// Whether a row may be beside the others: its mail is its own.
inline bool fits(const SessionModel& model, const Session& row) {
  return std::ranges::none_of(model, [&](const Session& other) {
    return other.token != row.token && row.mail && other.mail == row.mail;
  });
}

template <class Tx>
void session_step(Tx& tx, Sessions& c, SessionModel& m, Random& r) {
  const Session row = some_session(r);
  const auto there = std::ranges::find(m, row.token, &Session::token);
  const bool new_one = there == m.end();
  switch (below(r, 8)) {
    case 0:
    case 1:
    case 2:
      if (!fits(m, row)) break;
      EXPECT_EQ(c.put(tx, row), new_one);
      if (new_one)
        m.push_back(row);
      else
        *there = row;
      break;
    case 3:
      if (!fits(m, row)) break;
      EXPECT_EQ(c.insert(tx, row), new_one);
      if (new_one) m.push_back(row);
      break;
    case 4: {
      EXPECT_EQ(c.erase(tx, row.token), !new_one);
      if (!new_one) m.erase(there);
      break;
    }
    case 5: {
      const auto change = [&](Session& s) {
        s.user = row.user;
        s.unindexed += 1;
        s.roles.emplace_back("more");
      };
      EXPECT_EQ(c.update(tx, row.token, change), !new_one);
      if (!new_one) change(*there);
      break;
    }
    case 6: {
      const std::chrono::sys_seconds now(std::chrono::seconds(below(r, 6)));
      const std::uint64_t most = below(r, 4);
      // The oldest time first; of one time, the row that was added first.
      SessionModel due;
      std::ranges::copy_if(m, std::back_inserter(due), [&](auto& s) { return s.until <= now; });
      std::ranges::stable_sort(due, {}, &Session::until);
      due.resize(std::min<std::size_t>(due.size(), most));
      EXPECT_EQ(c.expire(tx, now, most), due.size());
      std::erase_if(m, [&](const Session& s) { return std::ranges::count(due, s) > 0; });
      break;
    }
    default:
      if (new_one || below(r, 2) == 0) break;
      Session renamed = some_session(r);  // its key, too
      if (!fits(m, renamed) || std::ranges::count(m, renamed.token, &Session::token) > 0) break;
      renamed.mail = there->mail;
      EXPECT_TRUE(c.update(tx, row.token, [&](Session& s) { s = renamed; }));
      *there = renamed;
  }
}

template <class C>
struct TableRoot {
  C x;
};

/// Whatever finds rows finds those of the model, in their order.
template <class Run>
void expect_sessions(Run& run) {
  run.expect_sound();
  const SessionModel& m = run.model;
  run.view([&](auto& tx, const Sessions& c) {
    EXPECT_EQ(c.size(tx), m.size());
    const auto rows_where = [&](auto member, auto wanted) {
      SessionModel rows;
      std::ranges::copy_if(m, std::back_inserter(rows), wanted, member);
      return rows;
    };
    const auto rows_of = [](auto&& range) {
      SessionModel rows;
      for (Session s : range) rows.push_back(s);
      return rows;
    };
    for (const Session& s : m) {
      EXPECT_EQ(c.find(tx, s.token), s);
      EXPECT_EQ((c.one<&Session::mail>(tx, s.mail)), s.mail ? std::optional(s) : std::nullopt);
      const auto row = c.at(tx, s.token);
      EXPECT_EQ((*row)[&Session::roles], s.roles);
      EXPECT_EQ((*row)[&Session::unindexed], s.unindexed);
      EXPECT_TRUE(
          row->peek(&Session::token, [&](std::string_view token) { return token == s.token; }));
    }
    EXPECT_FALSE(c.find(tx, "none") || c.at(tx, "none") || c.contains(tx, "none"));
    for (std::uint64_t user = 0; user < 6; ++user) {
      auto wanted = rows_where(&Session::user, [&](auto u) { return u == user; });
      EXPECT_EQ(rows_of(c.by<&Session::user>(tx, user)), wanted);
      std::ranges::reverse(wanted);
      EXPECT_EQ(rows_of(c.by<&Session::user>(tx, user) | std::views::reverse), wanted);
    }
    auto by_price = m;
    std::ranges::stable_sort(by_price, std::greater<>(), &Session::price);
    EXPECT_EQ(rows_of(c.ordered<&Session::price>(tx)), by_price);
    auto some = rows_where(&Session::price, [](auto p) { return p <= 1 && p > -1; });
    std::ranges::stable_sort(some, std::greater<>(), &Session::price);
    EXPECT_EQ(rows_of(c.range<&Session::price>(tx, 1, -1)), some);
    auto by_mail = rows_where(&Session::mail, [](auto& mail) { return mail.has_value(); });
    std::ranges::sort(by_mail, {}, &Session::mail);
    EXPECT_EQ(rows_of(c.ordered<&Session::mail>(tx)), by_mail);
    return 0;
  });
}

template <class Policy>
void table_model_test() {
  Runner<typename Policy::template Pool<TableRoot<Sessions>>, SessionModel> run(6);
  for (int i = 0; i < steps<Policy>(900) && !::testing::Test::HasFailure(); ++i) {
    run.transaction(1 + below(run.random, 8), [](auto& tx, Sessions& c, SessionModel& m,
                                                 Random& r) { session_step(tx, c, m, r); });
    if (i % 50 == 0) expect_sessions(run);
  }
  expect_sessions(run);
  run.pool.update([](auto& tx, auto& root) {
    while (!root.x.clear_some(tx, 7)) {}
  });
  run.model.clear();
  expect_sessions(run);
  run.expect_no_blocks();
}

template <class Policy>
class TableSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(TableSuite);

TYPED_TEST_P(TableSuite, ComparedWithRows) { table_model_test<TypeParam>(); }

TYPED_TEST_P(TableSuite, AUniqueMemberOfAnotherRowIsRefused) {
  using Root = TableRoot<Sessions>;
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    root.x.insert(tx, {.token = "a", .mail = "a@x"});
    root.x.insert(tx, {.token = "b", .mail = "b@x"});
  });
  const auto expect_refused = [&](const std::string& member, auto change) {
    try {
      pool.update([&](auto& tx, Root& root) { change(tx, root.x); });
      ADD_FAILURE() << "two rows share their mail";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::exists);
      EXPECT_NE(std::string(e.what()).find("found another row with the same '" + member + "'"),
                std::string::npos)
          << e.what();
    }
  };
  expect_refused("mail",
                 [](auto& tx, Sessions& c) { c.insert(tx, {.token = "c", .mail = "a@x"}); });
  expect_refused("mail", [](auto& tx, Sessions& c) { c.put(tx, {.token = "b", .mail = "a@x"}); });
  expect_refused(
      "mail", [](auto& tx, Sessions& c) { c.update(tx, "b", [](Session& s) { s.mail = "a@x"; }); });
  expect_refused(
      "token", [](auto& tx, Sessions& c) { c.update(tx, "b", [](Session& s) { s.token = "a"; }); });
  pool.update([](auto& tx, Root& root) {  // its own is no other row's
    EXPECT_FALSE(root.x.put(tx, {.token = "b", .user = 9, .mail = "b@x"}));
    EXPECT_EQ(root.x.find(tx, "b")->user, 9U);
    EXPECT_EQ(root.x.size(tx), 2U);
  });
}

/// Rows may be erased and changed in a loop over them.
TYPED_TEST_P(TableSuite, ChangedInALoop) {
  using Root = TableRoot<Orders>;
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    for (std::int16_t i = 0; i < 200; ++i)
      root.x.insert(
          tx, {{static_cast<std::int16_t>(i % 10), std::to_string(i)}, i % 3 == 0 ? "ann" : "bob"});
    for (auto order : root.x.by<&Order::owner>(tx, "ann")) root.x.erase(tx, order[&Order::id]);
    for (auto order : root.x.ordered<&Order::id>(tx) | std::views::reverse)
      if (const auto id = order[&Order::id]; id.first % 2 == 1)
        root.x.update(tx, id, [](Order& o) { o.owner = "eve"; });
  });
  pool.view([](auto& tx, const Root& root) {
    EXPECT_EQ(root.x.size(tx), 133U);
    EXPECT_EQ(std::ranges::distance(root.x.by<&Order::owner>(tx, "ann")), 0);
    std::ptrdiff_t eves = 0;
    for (const auto order : root.x.range<&Order::id>(tx, {1, ""}, {2, ""})) {
      EXPECT_EQ(order->owner, "eve");
      ++eves;
    }
    EXPECT_EQ(eves, 14);
    return 0;
  });
}

/// A loop over a part of an index ends at its bound, whatever is added behind it, and in both
/// directions.
TYPED_TEST_P(TableSuite, ALoopEndsAtItsBounds) {
  using Root = TableRoot<Sessions>;
  typename TypeParam::template Pool<Root> pool;
  const auto token = [](int i) { return std::to_string(i); };
  pool.update([&](auto& tx, Root& root) {
    for (int i = 0; i < 20; ++i)
      root.x.insert(tx, {.token = token(i), .user = static_cast<std::uint64_t>(i % 4)});
  });
  for (const std::uint64_t others : {0, 1}) {  // without and with rows behind the bound
    pool.update([&](auto& tx, Root& root) {
      int visited = 0;
      for (auto row : root.x.template by<&Session::user>(tx, 3 - others)) {
        ASSERT_LT(++visited, 30);
        root.x.update(tx, row[&Session::token], [](Session& s) { s.user += 10; });
      }
      EXPECT_EQ(visited, 5);
    });
  }
  pool.update([&](auto& tx, Root& root) {  // users: 0 and 1 five times each, 12, 13
    int visited = 0;
    for (auto row : root.x.template range<&Session::user>(tx, 0, 2)) {
      ASSERT_LT(++visited, 30);
      root.x.update(tx, row[&Session::token], [](Session& s) { s.user += 5; });
    }
    EXPECT_EQ(visited, 10);
    visited = 0;
    // Backwards, while the first ones go.
    for (auto row : root.x.template range<&Session::user>(tx, 5, 7) | std::views::reverse) {
      ASSERT_LT(++visited, 30);
      if (visited == 5) root.x.erase(tx, token(0));
      EXPECT_GE(row[&Session::user], 5U);
    }
    EXPECT_EQ(visited, 9);
    for (auto row : root.x.template ordered<&Session::user>(tx))
      root.x.erase(tx, row[&Session::token]);
    EXPECT_TRUE(root.x.empty(tx));
  });
}

/// A row without a time never expires.
TYPED_TEST_P(TableSuite, OnlyWhatHasATimeExpires) {
  struct Lease {
    std::uint32_t id = 0;
    std::optional<std::chrono::sys_seconds> until;
  };
  struct Root {
    table<Lease, ordered_key<&Lease::id>, expires<&Lease::until>> x;
  };
  typename TypeParam::template Pool<Root> pool;
  const std::chrono::sys_seconds now(std::chrono::seconds(100));
  pool.update([&](auto& tx, Root& root) {
    root.x.insert(tx, {1, std::nullopt});
    root.x.insert(tx, {2, now});
    root.x.insert(tx, {3, now + std::chrono::seconds(1)});
    EXPECT_EQ(root.x.expire(tx, now), 1U);
    EXPECT_TRUE(root.x.contains(tx, 1) && root.x.contains(tx, 3) && !root.x.contains(tx, 2));
    EXPECT_TRUE(root.x.update(tx, 1, [&](Lease& lease) { lease.until = now; }));
    EXPECT_EQ(root.x.expire(tx, now), 1U);
    EXPECT_TRUE(root.x.audit(tx).empty());
  });
}

/// NaN is a value with a place in the order.
TYPED_TEST_P(TableSuite, NoNumberIsANumber) {
  struct Point {
    double x = 0;
    float weight = 0;
  };
  struct Root {
    table<Point, ordered_key<&Point::x>, indexed<&Point::weight>> x;
    map<double, std::uint32_t> plain;
  };
  typename TypeParam::template Pool<Root> pool;
  const double nan = std::nan("");
  pool.update([&](auto& tx, Root& root) {
    for (int i = 0; i < 60; ++i) {
      root.x.put(tx, {i % 7 == 0 ? nan : i, i % 3 == 0 ? std::nanf("1") : static_cast<float>(i)});
      root.plain.put(tx, i % 7 == 0 ? nan : i, 1);
    }
    EXPECT_TRUE(root.x.audit(tx).empty() && root.plain.audit(tx).empty());
    EXPECT_EQ(root.x.size(tx), 52U);
    EXPECT_EQ(root.plain.size(tx), 52U);
    EXPECT_TRUE(root.x.contains(tx, nan) && root.plain.contains(tx, nan));
    EXPECT_TRUE(root.x.update(tx, nan, [](Point& p) { p.weight = 5; }));
    EXPECT_TRUE(root.x.audit(tx).empty());
    for (int i = 0; i < 60; ++i) root.x.erase(tx, i % 7 == 0 ? nan : i);
    EXPECT_TRUE(root.x.empty(tx) && root.x.audit(tx).empty());
  });
}

/// What update() is given changes its row alone.
TYPED_TEST_P(TableSuite, ChangesWithinAnUpdateAreRefused) {
  using Root = TableRoot<Sessions>;
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) { root.x.insert(tx, {.token = "a"}); });
  const auto expect_refused = [&](auto change) {
    try {
      pool.update([&](auto& tx, Root& root) {
        root.x.update(tx, "a", [&](Session&) { change(tx, root.x); });
      });
      ADD_FAILURE() << "the table was changed";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::invalid) << e.what();
    }
  };
  expect_refused([](auto& tx, Sessions& c) { c.erase(tx, "a"); });
  expect_refused([](auto& tx, Sessions& c) { c.insert(tx, {.token = "b"}); });
  expect_refused([](auto& tx, Sessions& c) { c.update(tx, "a", [](Session& s) { ++s.user; }); });
  pool.update([](auto& tx, Root& root) {
    EXPECT_EQ(root.x.size(tx), 1U);
    EXPECT_TRUE(root.x.erase(tx, "a"));
  });
}

struct Fill {
  std::string market;
  std::uint32_t day = 0;
  std::uint32_t number = 0;
  std::optional<std::string> buyer{};
  std::int64_t price = 0;
  friend bool operator==(const Fill&, const Fill&) = default;
};
using Fills = table<Fill, ordered_key<&Fill::market, &Fill::day, &Fill::number>,
                    indexed<&Fill::day, &Fill::market>, unique<&Fill::buyer, &Fill::day>,
                    indexed_descending<&Fill::price, &Fill::number>>;
using HashedFills =
    table<Fill, key<&Fill::market, &Fill::number>, indexed<&Fill::number, &Fill::market>>;

/// Keys and indexes of several members: look-ups by all of them, ranges by the first ones.
TYPED_TEST_P(TableSuite, FoundBySeveralMembers) {
  struct Root {
    Fills x;
    HashedFills hashed;
  };
  typename TypeParam::template Pool<Root> pool;
  std::vector<Fill> model;
  for (std::uint32_t i = 0; i < 120; ++i) {
    model.push_back({.market = i % 3 == 0   ? "a market of a fairly long name"
                               : i % 3 == 1 ? "b"
                                            : "",
                     .day = i / 3 % 8,
                     .number = i,
                     .buyer = i % 5 == 0 ? std::nullopt : std::optional(std::to_string(i % 40)),
                     .price = static_cast<std::int64_t>(i % 6) - 3});
  }
  std::erase_if(model, [&](const Fill& row) {  // one of each buyer and day
    return row.buyer && std::ranges::any_of(model, [&](const Fill& other) {
             return other.number < row.number && other.buyer == row.buyer && other.day == row.day;
           });
  });
  ASSERT_GT(model.size(), 60U);
  pool.update([&](auto& tx, Root& root) {
    for (const Fill& row : model) {
      EXPECT_TRUE(root.x.insert(tx, row));
      EXPECT_TRUE(root.hashed.insert(tx, row));
    }
    EXPECT_FALSE(root.x.insert(tx, model[7]));
    const std::string market = model[3].market;
    EXPECT_TRUE(root.x.update(tx, std::tie(market, model[3].day, model[3].number),
                              [](Fill& row) { row.price += 100; }));
    model[3].price += 100;
    EXPECT_TRUE(root.x.erase(tx, {model[5].market, model[5].day, model[5].number}));
    EXPECT_TRUE(root.hashed.erase(tx, std::tie(model[5].market, model[5].number)));
    model.erase(model.begin() + 5);
  });
  pool.view([&](auto& tx, const Root& root) {
    const Fills& x = root.x;
    const auto problems = x.audit(tx);
    EXPECT_TRUE(problems.empty()) << problems.front();
    EXPECT_TRUE(root.hashed.audit(tx).empty());
    const auto rows_of = [](auto&& range) {
      std::vector<Fill> rows;
      for (Fill row : range) rows.push_back(row);
      return rows;
    };
    const auto where = [&](auto wanted, auto order) {
      std::vector<Fill> rows;
      std::ranges::copy_if(model, std::back_inserter(rows), wanted);
      std::ranges::stable_sort(rows, {}, order);
      return rows;
    };
    for (const Fill& row : model) {
      EXPECT_EQ(x.find(tx, row.market, row.day, row.number), row);
      EXPECT_TRUE(root.hashed.contains(tx, row.market, row.number));
      EXPECT_EQ((*x.at(tx, row.market, row.day, row.number))[&Fill::price], row.price);
      EXPECT_EQ((x.one<&Fill::buyer, &Fill::day>(tx, row.buyer, row.day)),
                row.buyer ? std::optional(row) : std::nullopt);
    }
    EXPECT_FALSE(x.contains(tx, "b", 99U, 0U));
    const auto by_day_and_market = [](const Fill& row) { return std::pair(row.day, row.market); };
    const auto by_market_and_day = [](const Fill& row) {
      return std::tuple(row.market, row.day, row.number);
    };
    for (std::uint32_t day = 0; day < 9; ++day) {
      const auto of_day = [&](const Fill& row) { return row.day == day; };
      EXPECT_EQ(rows_of(x.by<&Fill::day>(tx, day)), where(of_day, by_day_and_market));
      EXPECT_EQ(rows_of(x.by<&Fill::day, &Fill::market>(tx, day, "b")),
                where([&](const Fill& row) { return of_day(row) && row.market == "b"; },
                      by_day_and_market));
      EXPECT_EQ(rows_of(x.by<&Fill::market, &Fill::day>(tx, "b", day)),
                where([&](const Fill& row) { return of_day(row) && row.market == "b"; },
                      by_market_and_day));
    }
    EXPECT_EQ(
        rows_of(x.range<&Fill::day>(tx, 2, 5)),
        where([](const Fill& row) { return row.day >= 2 && row.day < 5; }, by_day_and_market));
    auto backwards = where([](const Fill& row) { return row.market == "b"; }, by_market_and_day);
    std::ranges::reverse(backwards);
    EXPECT_EQ(rows_of(x.by<&Fill::market>(tx, "b") | std::views::reverse), backwards);
    const auto dearest_first = [](const Fill& row) {
      return std::pair(-row.price, -static_cast<std::int64_t>(row.number));
    };
    EXPECT_EQ(rows_of(x.ordered<&Fill::price>(tx)),
              where([](const Fill&) { return true; }, dearest_first));
    return 0;
  });
  pool.update([](auto& tx, Root& root) {  // a loop over a prefix ends there, whatever is added
    int visited = 0;
    for (auto row : root.x.template by<&Fill::day>(tx, 3)) {
      ASSERT_LT(++visited, 40);
      Fill more = row;
      more.number += 1000, more.buyer.reset(), ++more.day;
      root.x.put(tx, more);
      root.x.erase(tx, {row->market, row->day, row->number});
    }
    EXPECT_TRUE(root.x.audit(tx).empty());
    EXPECT_EQ(std::ranges::distance(root.x.template by<&Fill::day>(tx, 3)), 0);
  });
  EXPECT_EQ(Fills::layout_text().substr(Fills::layout_text().find(",ordered_key")),
            ",ordered_key market+day+number,index day+market,unique buyer+day,descending "
            "price+number>/1");
}

/// Maps with keys of several parts: the elements whose key begins with the first ones.
TYPED_TEST_P(TableSuite, MapsByTheFirstPartsOfAKey) {
  using Key = std::tuple<std::string, std::uint32_t, std::string>;
  struct Root {
    map<Key, std::uint32_t, 4> x;
    map<std::pair<std::int32_t, std::string>, std::uint32_t> pairs;
  };
  typename TypeParam::template Pool<Root> pool;
  std::map<Key, std::uint32_t> model;
  pool.update([&](auto& tx, Root& root) {
    for (std::uint32_t i = 0; i < 200; ++i) {
      const Key key(std::string(i % 4, 'k'), i % 5, std::to_string(i % 50));
      root.x.put(tx, key, i);
      model[key] = i;
      root.pairs.put(tx, {static_cast<std::int32_t>(i % 7) - 3, std::to_string(i)}, i);
    }
  });
  pool.view([&](auto& tx, const Root& root) {
    for (std::size_t n = 0; n < 5; ++n) {
      const std::string first(n, 'k');
      std::vector<std::uint32_t> wanted, found;
      for (const auto& [key, value] : model)
        if (std::get<0>(key) == first) wanted.push_back(value);
      for (const auto& [key, value] : root.x.starting_with(tx, first)) found.push_back(value);
      EXPECT_EQ(found, wanted);
      wanted.clear(), found.clear();
      for (const auto& [key, value] : model)
        if (std::get<0>(key) == first && std::get<1>(key) == 3) wanted.push_back(value);
      for (const auto& [key, value] : root.x.starting_with(tx, first, 3)) found.push_back(value);
      EXPECT_EQ(found, wanted);
    }
    EXPECT_EQ(std::ranges::distance(root.pairs.starting_with(tx, -3)), 29);
    EXPECT_EQ(std::ranges::distance(root.pairs.starting_with(tx, 4)), 0);
    return 0;
  });
}

/// Ranges with one bound, and with bounds that are included, in both orders of an index.
TYPED_TEST_P(TableSuite, RangesBetweenBounds) {
  struct Root {
    Fills x;
    Orders orders;
    map<std::string, int, 4> plain;
    rb_tree<std::int64_t, int> tree;
    set<std::int64_t> numbers;
  };
  typename TypeParam::template Pool<Root> pool;
  std::vector<Fill> model;
  for (std::uint32_t i = 0; i < 90; ++i)
    model.push_back({std::string(i % 3, 'm'), i / 3 % 7, i, {}, static_cast<std::int64_t>(i % 5)});
  pool.update([&](auto& tx, Root& root) {
    for (const Fill& row : model) root.x.insert(tx, row);
    for (std::int16_t i = 0; i < 9; ++i)
      root.orders.insert(tx,
                         {{i, "a name of more than 15 letters"}, std::string(20, "abc"[i % 3])});
    for (int i = 0; i < 40; i += 2) {
      root.plain.put(tx, std::to_string(100 + i), i);
      root.tree.put(tx, i, i);
      root.numbers.insert(tx, i);
    }
  });
  const auto expect_ranges = [&](auto& tx, const Root& root) {
    const auto days = [&](auto... bounds) {
      std::vector<std::uint32_t> found;
      for (auto row : root.x.template range<&Fill::day>(tx, bounds...))
        if (found.empty() || found.back() != row[&Fill::day]) found.push_back(row[&Fill::day]);
      return found;
    };
    using Days = std::vector<std::uint32_t>;
    EXPECT_EQ(days(from(4)), (Days{4, 5, 6}));
    EXPECT_EQ(days(after(4)), (Days{5, 6}));
    EXPECT_EQ(days(before(2U)), (Days{0, 1}));
    EXPECT_EQ(days(through(2)), (Days{0, 1, 2}));
    EXPECT_EQ(days(after(2), through(4)), (Days{3, 4}));
    EXPECT_EQ(days(from(2), before(2)), Days{});
    EXPECT_EQ(days(after(4), through(2)), Days{});
    EXPECT_EQ(days(after(6)), Days{});
    EXPECT_EQ(days(2, 4), (Days{2, 3}));
    const auto prices = [&](auto... bounds) {  // descending
      std::vector<std::int64_t> found;
      for (auto row : root.x.template range<&Fill::price>(tx, bounds...))
        if (found.empty() || found.back() != row[&Fill::price]) found.push_back(row[&Fill::price]);
      return found;
    };
    using Prices = std::vector<std::int64_t>;
    EXPECT_EQ(prices(through(3)), (Prices{4, 3}));
    EXPECT_EQ(prices(before(3)), (Prices{4}));
    EXPECT_EQ(prices(after(3), through(1)), (Prices{2, 1}));
    // The last one of several members, text among them.
    const std::string_view market = "m";
    std::vector<std::uint32_t> found, wanted;
    for (auto row :
         root.x.template range<&Fill::market, &Fill::day>(tx, market, after(1), through(4)))
      found.push_back(row[&Fill::number]);
    for (std::uint32_t day = 2; day <= 4; ++day)
      for (const Fill& row : model)
        if (row.market == market && row.day == day) wanted.push_back(row.number);
    EXPECT_EQ(found, wanted);
    EXPECT_EQ(std::ranges::distance(
                  root.x.template range<&Fill::market, &Fill::day>(tx, market, from(5))),
              std::ranges::count_if(
                  model, [&](const Fill& row) { return row.market == market && row.day >= 5; }));
    EXPECT_EQ(std::ranges::distance(
                  root.x.template range<&Fill::day, &Fill::market>(tx, 3, through("m"))),
              std::ranges::count_if(
                  model, [](const Fill& row) { return row.day == 3 && row.market <= "m"; }));
    EXPECT_EQ(std::ranges::distance(root.orders.template range<&Order::id>(
                  tx, after(std::pair<std::int16_t, std::string>(
                          std::int16_t{4}, "a name of more than 15 letters")))),
              4);
    const std::string_view owner = "bbbbbbbbbbbbbbbbbbbb";
    EXPECT_EQ(std::ranges::distance(root.orders.template by<&Order::owner>(tx, owner)), 3);
    EXPECT_EQ(std::ranges::distance(root.orders.template range<&Order::owner>(tx, after(owner))),
              3);
    const auto ends = [](auto&& range) {
      std::pair<int, int> out(-1, -1);
      for (const auto& [key, value] : range) out = {out.first < 0 ? value : out.first, value};
      return out;
    };
    EXPECT_EQ(ends(root.plain.range(tx, after("104"))), std::pair(6, 38));
    EXPECT_EQ(ends(root.plain.range(tx, through(std::string("104")))), std::pair(0, 4));
    EXPECT_EQ(ends(root.plain.range(tx, before("105"))), std::pair(0, 4));
    EXPECT_EQ(ends(root.plain.range(tx, after("1041"), through("110"))), std::pair(6, 10));
    EXPECT_EQ(ends(root.tree.range(tx, after(4), through(10))), std::pair(6, 10));
    EXPECT_EQ(ends(root.tree.range(tx, after(4), through(10)) | std::views::reverse),
              std::pair(10, 6));
    EXPECT_EQ(std::ranges::distance(root.numbers.range(tx, through(10))), 6);
    EXPECT_EQ(std::ranges::distance(root.numbers.range(tx, after(10))), 14);
    return 0;
  };
  pool.view(expect_ranges);
  pool.update([&](auto& tx, Root& root) {
    expect_ranges(tx, root);
    int visited = 0;  // a bound that is included holds while rows are added behind it
    for (auto row : root.x.template range<&Fill::day>(tx, through(1))) {
      ASSERT_LT(++visited, 99);
      root.x.update(tx, row, [](Fill& fill) { fill.day += 2; });
    }
    EXPECT_EQ(visited, 30);
    EXPECT_TRUE(root.x.audit(tx).empty());
  });
}

/// A row that a loop found is changed and erased. The row_ref follows its row, and knows when the
/// row was erased.
TYPED_TEST_P(TableSuite, ChangedThroughARow) {
  struct Root {
    Orders x, others;
  };
  typename TypeParam::template Pool<Root> pool;
  const auto id = [](std::int16_t i) { return std::pair<std::int16_t, std::string>(i, "x"); };
  pool.update([&](auto& tx, Root& root) {
    for (std::int16_t i = 0; i < 100; ++i) {
      root.x.insert(tx, {id(i), i % 2 == 0 ? "ann" : "bob"});
      root.others.insert(tx, {id(i), "eve"});
    }
    for (auto order : root.x.template by<&Order::owner>(tx, "ann")) {
      if (order->id.first % 4 == 0)
        root.x.erase(tx, order);
      else
        root.x.update(tx, order,
                      [](Order& o) { o.owner = "a fairly long name, by which it moves"; });
    }
    EXPECT_EQ(root.x.size(tx), 75U);
    EXPECT_EQ(std::ranges::distance(
                  root.x.template by<&Order::owner>(tx, "a fairly long name, by which it moves")),
              25);
    const auto row = *root.x.at(tx, id(1));
    const auto same = row;
    EXPECT_EQ(row->owner, "bob");
    root.x.update(tx, id(1), [](Order& o) { o.owner = "dan"; });
    EXPECT_EQ(row->owner, "dan");  // not what it copied before
    EXPECT_EQ(same[&Order::owner], "dan");
    const auto taken = root.x.take(tx, id(1));
    EXPECT_EQ(taken, (Order{id(1), "dan"}));
    EXPECT_FALSE(root.x.take(tx, id(1)));
    for (int i = 0; i < 3; ++i) root.x.insert(tx, {id(static_cast<std::int16_t>(200 + i)), "new"});
    try {
      (void)same[&Order::owner];
      ADD_FAILURE() << "an erased row was read";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::invalid) << e.what();
      EXPECT_NE(std::string(e.what()).find("a row that was erased"), std::string::npos);
    }
    EXPECT_TRUE(root.x.audit(tx).empty() && root.others.audit(tx).empty());
  });
  const auto expect_refused = [&](std::string_view why, auto change) {
    try {
      pool.update([&](auto& tx, Root& root) { change(tx, root); });
      ADD_FAILURE() << why;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::invalid) << e.what();
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  expect_refused("a row of another table", [&](auto& tx, Root& root) {
    root.others.update(tx, *root.x.at(tx, id(3)), [](Order& o) { o.owner = "x"; });
  });
  expect_refused("a row of another table",
                 [&](auto& tx, Root& root) { root.x.erase(tx, *root.others.at(tx, id(3))); });
  expect_refused("a row that was erased", [&](auto& tx, Root& root) {
    const auto row = *root.x.at(tx, id(3));
    root.x.erase(tx, row);
    root.x.erase(tx, row);
  });
  pool.view([&](auto& tx, const Root& root) {
    EXPECT_EQ(root.x.find(tx, id(3)), (Order{id(3), "bob"}));
    return 0;
  });
}

/// add() gives keys that no other row ever had, whatever was put and erased.
TYPED_TEST_P(TableSuite, KeysThatTheTableGives) {
  struct Job {
    std::uint8_t id = 0;
    std::string task;
  };
  struct Root {
    table<Job, key<&Job::id>, indexed<&Job::task>> x;
  };
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    EXPECT_EQ(root.x.add(tx, {0, "a"}), 1);
    EXPECT_EQ(root.x.add(tx, {99, "b"}), 2);
    EXPECT_TRUE(root.x.erase(tx, 2));
    EXPECT_EQ(root.x.add(tx, {0, "c"}), 3);
    EXPECT_TRUE(root.x.put(tx, {6, "put"}));  // it takes the number that 5 would have had
    EXPECT_EQ(root.x.add(tx, {0, "d"}), 5);
    EXPECT_EQ(root.x.add(tx, {0, "e"}), 7);
    EXPECT_EQ(root.x.find(tx, 5)->task, "d");
    EXPECT_TRUE(root.x.audit(tx).empty());
  });
  try {
    pool.update([](auto& tx, Root& root) {
      for (int i = 0; i < 300; ++i) root.x.erase(tx, root.x.add(tx, {0, "many"}));
    });
    ADD_FAILURE() << "300 keys of one byte";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::full) << e.what();
  }
}

/// Keys and other values by which rows are found are passed in as std::string_view.
TYPED_TEST_P(TableSuite, FoundByTextThatIsNoString) {
  struct Root {
    HashedFills hashed;
    Sessions sessions;
  };
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    const std::string_view market = "a market of a fairly long name";
    root.hashed.insert(tx, {std::string(market), 1, 7});
    root.sessions.insert(tx, {.token = "t", .mail = std::string(market)});
    EXPECT_EQ((root.sessions.template one<&Session::mail>(tx, market)->token), "t");
    EXPECT_FALSE((root.sessions.template one<&Session::mail>(tx, std::nullopt)));
    EXPECT_TRUE(root.hashed.contains(tx, market, 7));
    EXPECT_TRUE(root.hashed.find(tx, {market, 7}));
    EXPECT_TRUE(root.hashed.at(tx, std::tuple(market, 7)));
    EXPECT_TRUE(root.hashed.update(tx, {market, 7}, [](Fill& fill) { fill.day = 2; }));
    EXPECT_FALSE(root.hashed.erase(tx, {market, 8}));
    EXPECT_EQ(root.hashed.take(tx, std::tuple(market, 7U))->day, 2U);
  });
}

REGISTER_TYPED_TEST_SUITE_P(TableSuite, RangesBetweenBounds, ChangedThroughARow,
                            KeysThatTheTableGives, FoundByTextThatIsNoString, FoundBySeveralMembers,
                            MapsByTheFirstPartsOfAKey, ComparedWithRows,
                            AUniqueMemberOfAnotherRowIsRefused, ChangedInALoop,
                            ALoopEndsAtItsBounds, OnlyWhatHasATimeExpires, NoNumberIsANumber,
                            ChangesWithinAnUpdateAreRefused);

}  // namespace perdure::test
