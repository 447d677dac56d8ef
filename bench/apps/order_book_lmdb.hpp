// SPDX-License-Identifier: BSD-3-Clause
//
// book::LmdbBook: the limit order book of examples/order_book.hpp on LMDB.
// Databases: for each side its orders, id -> price, quantity, owner, and the indexes price -> ids
// and owner -> ids; `sums` has the last id and the sums. A bid's price is a key with its bits
// turned over, so that the best price of both sides comes first.
// An owner has 1 to 511 bytes, as LMDB's keys.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include "bench/apps/bytes.hpp"
#include "bench/lmdb/environment.hpp"
#include "examples/order_book.hpp"

namespace book {

class LmdbBook {
 public:
  explicit LmdbBook(const std::string& path, bool sync = true) : env_(path, sync) {
    env_.update([&](Tx& tx) {
      constexpr unsigned ids = MDB_DUPSORT | MDB_DUPFIXED;
      bids_ = {tx.database("bids"), tx.database("bids_by_price", ids),
               tx.database("bids_by_owner", ids), ~std::uint64_t{0}};
      asks_ = {tx.database("asks"), tx.database("asks_by_price", ids),
               tx.database("asks_by_owner", ids), 0};
      sums_ = tx.database("sums");
      return true;
    });
  }

  Placed place(Side side, std::string_view owner, Price price, std::uint32_t quantity) {
    return env_.update([&](Tx& tx) {
      Placed out{add_to(tx, "last_id", 1), quantity, {}};
      add_to(tx, "entered", quantity);
      match(tx, side == Side::buy ? asks_ : bids_, price, out);
      if (out.resting != 0) {
        const Orders& own = side == Side::buy ? bids_ : asks_;
        const Order rest{out.id, price, out.resting, std::string(owner)};
        const std::string id = bench::apps::bytes_of(out.id);
        tx.put(own.by_price, own.key_of(price), id);
        tx.put(own.by_owner, owner, id);
        put(tx, own, rest);
      }
      return out;
    });
  }
  bool cancel(std::uint64_t id) {
    return env_.update([&](Tx& tx) {
      for (const Orders* orders : {&bids_, &asks_}) {
        const auto order = load(tx, *orders, id);
        if (!order) continue;
        add_to(tx, "cancelled", order->quantity);
        erase(tx, *orders, *order);
        return true;
      }
      return false;
    });
  }
  std::vector<Order> orders_of(const std::string& owner) {
    return env_.view([&](Tx& tx) {
      std::vector<Order> found;
      for (const Orders* orders : {&bids_, &asks_}) {
        bench::lmdb::Cursor at(tx, orders->by_owner);
        for (bool there = at.seek(owner, MDB_SET_KEY); there; there = at.move(MDB_NEXT_DUP))
          found.push_back(*load(tx, *orders, bench::apps::number_of(at.value())));
      }
      return found;
    });
  }
  Totals totals() {
    return env_.view([&](Tx& tx) {
      Totals out{sum(tx, "entered"), sum(tx, "traded"), sum(tx, "cancelled"), 0, {}, {}};
      for (const Orders* orders : {&bids_, &asks_}) {
        bench::lmdb::Cursor best(tx, orders->by_price), at(tx, orders->rows);
        if (best.move(MDB_FIRST)) (orders == &bids_ ? out.bid : out.ask) = orders->price_of(best);
        for (bool there = at.move(MDB_FIRST); there; there = at.move(MDB_NEXT))
          out.resting += order_of(0, at.value()).quantity;
      }
      return out;
    });
  }

 private:
  using Tx = bench::lmdb::Transaction;
  struct Orders {
    MDB_dbi rows = 0, by_price = 0, by_owner = 0;
    std::uint64_t turned = 0;  // the bits of a price that are turned over in its key

    [[nodiscard]] std::string key_of(Price price) const {
      return bench::apps::bytes_of(bench::apps::unsigned_of(price) ^ turned);
    }
    [[nodiscard]] Price price_of(const bench::lmdb::Cursor& at) const {
      return bench::apps::signed_of(bench::apps::number_of(at.key()) ^ turned);
    }
  };
  static Order order_of(std::uint64_t id, std::string_view bytes) {
    bench::apps::Reader reader(bytes);
    Order order{id, bench::apps::signed_of(reader.number()), 0, {}};
    order.quantity = static_cast<std::uint32_t>(reader.number());
    order.owner = reader.text();
    return order;
  }

  // Fills `out` from the orders of the other side, the best price first, up to the limit.
  void match(Tx& tx, const Orders& others, Price limit, Placed& out) {
    const std::string last = others.key_of(limit);
    bench::lmdb::Cursor at(tx, others.by_price);
    while (out.resting != 0 && at.move(MDB_FIRST) && at.key() <= last) {
      Order order = *load(tx, others, bench::apps::number_of(at.value()));
      const std::uint32_t filled = std::min(order.quantity, out.resting);
      out.fills.push_back({order.id, order.price, filled});
      out.resting -= filled;
      order.quantity -= filled;
      add_to(tx, "traded", filled);
      if (order.quantity == 0)
        erase(tx, others, order);
      else
        put(tx, others, order);
    }
  }
  std::optional<Order> load(Tx& tx, const Orders& from, std::uint64_t id) {
    std::string_view bytes;
    if (!tx.get(from.rows, bench::apps::bytes_of(id), bytes)) return {};
    return order_of(id, bytes);
  }
  void put(Tx& tx, const Orders& to, const Order& order) {
    bench::apps::Writer writer;
    writer.number(bench::apps::unsigned_of(order.price)).number(order.quantity).text(order.owner);
    tx.put(to.rows, bench::apps::bytes_of(order.id), writer.bytes());
  }
  void erase(Tx& tx, const Orders& from, const Order& order) {
    const std::string id = bench::apps::bytes_of(order.id);
    tx.erase(from.by_price, from.key_of(order.price), id);
    tx.erase(from.by_owner, order.owner, id);
    tx.erase(from.rows, id);
  }
  std::uint64_t sum(Tx& tx, std::string_view name) {
    std::string_view bytes;
    return tx.get(sums_, name, bytes) ? bench::apps::number_of(bytes) : 0;
  }
  std::uint64_t add_to(Tx& tx, std::string_view name, std::uint64_t n) {
    const std::uint64_t now = sum(tx, name) + n;
    tx.put(sums_, name, bench::apps::bytes_of(now));
    return now;
  }

  bench::lmdb::Environment env_;
  Orders bids_, asks_;
  MDB_dbi sums_ = 0;
};

}  // namespace book
