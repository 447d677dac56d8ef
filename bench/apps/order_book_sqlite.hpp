// SPDX-License-Identifier: BSD-3-Clause
//
// book::SqliteBook: the limit order book of examples/order_book.hpp on SQLite.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include "bench/apps/sqlite.hpp"
#include "examples/order_book.hpp"

namespace book {

class SqliteBook {
 public:
  explicit SqliteBook(const std::string& path, const std::string& synchronous = "FULL")
      : file_(path, synchronous) {}

  Placed place(Side side, std::string_view owner, Price price, std::uint32_t quantity) {
    return file_.update([&](Statements& sql) {
      Placed out{0, quantity, {}};
      std::uint32_t there = 0;  // of the last order that was met
      auto& others = side == Side::buy ? sql.best_asks : sql.best_bids;
      for (bool row = others(price); row && out.resting != 0; row = others.next()) {
        there = static_cast<std::uint32_t>(others.number(2));
        const std::uint32_t filled = std::min(there, out.resting);
        out.fills.push_back(
            {static_cast<std::uint64_t>(others.number(0)), others.number(1), filled});
        out.resting -= filled;
      }
      others.done();
      for (const Fill& fill : out.fills) {
        if (&fill == &out.fills.back() && fill.quantity < there)
          sql.reduce(fill.id, fill.quantity);
        else
          sql.erase(fill.id);
      }
      sql.count(quantity, quantity - out.resting);
      out.id = static_cast<std::uint64_t>(sql.count.number(0));
      sql.count.done();
      if (out.resting != 0) sql.insert(out.id, static_cast<int>(side), price, out.resting, owner);
      return out;
    });
  }
  bool cancel(std::uint64_t id) {
    return file_.update([&](Statements& sql) {
      if (!sql.cancel(id)) return false;
      sql.count_cancelled(sql.cancel.number(0));
      sql.cancel.done();
      return true;
    });
  }
  std::vector<Order> orders_of(const std::string& owner) {
    return file_.read([&](Statements& sql) {
      std::vector<Order> found;
      for (bool row = sql.orders_of(owner); row; row = sql.orders_of.next())
        found.push_back({static_cast<std::uint64_t>(sql.orders_of.number(0)),
                         sql.orders_of.number(1),
                         static_cast<std::uint32_t>(sql.orders_of.number(2)), owner});
      return found;
    });
  }
  Totals totals() {
    return file_.view([&](Statements& sql) {
      sql.sums();
      const auto n = [&](int column) {
        return static_cast<std::uint64_t>(sql.sums.number(column));
      };
      Totals out{n(0), n(1), n(2), n(3), {}, {}};
      sql.sums.done();
      if (sql.best_bids(std::numeric_limits<Price>::min())) out.bid = sql.best_bids.number(1);
      sql.best_bids.done();
      if (sql.best_asks(std::numeric_limits<Price>::max())) out.ask = sql.best_asks.number(1);
      sql.best_asks.done();
      return out;
    });
  }

 private:
  struct Statements {
    static constexpr const char* schema =
        "CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, side INTEGER NOT NULL,"
        " price INTEGER NOT NULL, quantity INTEGER NOT NULL, owner TEXT NOT NULL);"
        "CREATE INDEX IF NOT EXISTS bids ON orders(price DESC) WHERE side = 0;"
        "CREATE INDEX IF NOT EXISTS asks ON orders(price) WHERE side = 1;"
        "CREATE INDEX IF NOT EXISTS by_owner ON orders(owner, side);"
        "CREATE TABLE IF NOT EXISTS sums(one INTEGER PRIMARY KEY CHECK(one = 1),"
        " last_id INTEGER NOT NULL, entered INTEGER NOT NULL, traded INTEGER NOT NULL,"
        " cancelled INTEGER NOT NULL);"
        "INSERT INTO sums VALUES(1, 0, 0, 0, 0) ON CONFLICT DO NOTHING";
    explicit Statements(bench::sqlite::Connection& c)
        : best_bids(c,
                    "SELECT id, price, quantity FROM orders WHERE side = 0 AND price >= ?1"
                    " ORDER BY price DESC, id"),
          best_asks(c,
                    "SELECT id, price, quantity FROM orders WHERE side = 1 AND price <= ?1"
                    " ORDER BY price, id"),
          reduce(c, "UPDATE orders SET quantity = quantity - ?2 WHERE id = ?1"),
          erase(c, "DELETE FROM orders WHERE id = ?1"),
          count(c,
                "UPDATE sums SET last_id = last_id + 1, entered = entered + ?1,"
                " traded = traded + ?2 RETURNING last_id"),
          insert(c, "INSERT INTO orders VALUES(?1, ?2, ?3, ?4, ?5)"),
          cancel(c, "DELETE FROM orders WHERE id = ?1 RETURNING quantity"),
          count_cancelled(c, "UPDATE sums SET cancelled = cancelled + ?1"),
          orders_of(c, "SELECT id, price, quantity FROM orders WHERE owner = ?1 ORDER BY side, id"),
          sums(c,
               "SELECT entered, traded, cancelled, (SELECT coalesce(sum(quantity), 0) FROM orders)"
               " FROM sums") {}
    bench::sqlite::Statement best_bids, best_asks, reduce, erase, count, insert, cancel,
        count_cancelled, orders_of, sums;
  };

  bench::apps::SqliteFile<Statements> file_;
};

}  // namespace book
