// SPDX-License-Identifier: BSD-3-Clause
//
// book::Book: a limit order book. A new order is matched with the best prices of the other side,
// and at one price with the oldest order first; what is left of it rests in the book.
// The program is order_book.cpp; the same book on LMDB and on SQLite is in bench/apps.
// Thread safety: any number of threads may call anything at once.
// Invariants: all that entered = 2 * traded + cancelled + resting. The best bid is below the best
// ask.
#pragma once

#include <perdure.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace book {

using Price = std::int64_t;  // in the smallest coin

enum class Side : std::uint8_t { buy, sell };

// An order that rests in the book.
struct Order {
  std::uint64_t id = 0;
  Price price = 0;
  std::uint32_t quantity = 0;  // what is left of it
  std::string owner;
};
struct Fill {
  std::uint64_t id;  // of the order that rested
  Price price;       // of that order
  std::uint32_t quantity;
  bool operator==(const Fill&) const = default;
};
// What became of a new order.
struct Placed {
  std::uint64_t id = 0;
  std::uint32_t resting = 0;
  std::vector<Fill> fills;
};
struct Totals {
  std::uint64_t entered = 0, traded = 0, cancelled = 0, resting = 0;
  std::optional<Price> bid, ask;  // the best ones
  bool operator==(const Totals&) const = default;
  [[nodiscard]] bool sound() const {
    return entered == 2 * traded + cancelled + resting && (!bid || !ask || *bid < *ask);
  }
};

struct Root {
  perdure::p<std::uint64_t> last_id, entered, traded, cancelled;
  perdure::table<Order, perdure::key<&Order::id>, perdure::indexed_descending<&Order::price>,
                 perdure::indexed<&Order::owner>>
      bids;
  perdure::table<Order, perdure::key<&Order::id>, perdure::indexed<&Order::price>,
                 perdure::indexed<&Order::owner>>
      asks;
};

// A book whose root and orders have at least the fields of those above.
template <class Root, class Order>
class BookOf {
 public:
  explicit BookOf(const std::string& path, const perdure::Options& options = {})
      : pool_(perdure::Pool<Root>::open(path, options)) {}

  Placed place(Side side, std::string_view owner, Price price, std::uint32_t quantity) {
    return place(side, Order{0, price, quantity, std::string(owner)});
  }
  // Places an order, which gets its id.
  Placed place(Side side, const Order& order) {
    return pool_
        .update([&](auto& tx, Root& root) {
          Placed out{tx(root.last_id) + 1, order.quantity, {}};
          tx(root.last_id) = out.id;
          tx(root.entered) += order.quantity;
          const auto match_and_rest = [&](auto& others, auto& own) {
            match(tx, root, others, order.price, out);
            Order rest = order;
            rest.id = out.id, rest.quantity = out.resting;
            if (rest.quantity != 0) own.insert(tx, rest);
          };
          side == Side::buy ? match_and_rest(root.asks, root.bids)
                            : match_and_rest(root.bids, root.asks);
          return out;
        })
        .value();
  }
  // Takes an order out of the book. Returns false if it does not rest there.
  bool cancel(std::uint64_t id) {
    return pool_
        .update([&](auto& tx, Root& root) {
          return cancel_in(tx, root, root.bids, id) || cancel_in(tx, root, root.asks, id);
        })
        .value();
  }
  // The orders of an owner: bids, then asks, oldest first.
  std::vector<Order> orders_of(std::string_view owner) {
    return pool_.view([&](auto& tx, const Root& root) {
      std::vector<Order> found;
      for (auto o : root.bids.template by<&Order::owner>(tx, owner)) found.push_back(o.value());
      for (auto o : root.asks.template by<&Order::owner>(tx, owner)) found.push_back(o.value());
      return found;
    });
  }
  // Sums over the whole book: it reads each order.
  Totals totals() {
    return pool_.view([](auto& tx, const Root& root) {
      Totals out{tx(root.entered), tx(root.traded), tx(root.cancelled), 0, {}, {}};
      for (auto o : root.bids.template ordered<&Order::price>(tx)) {
        if (!out.bid) out.bid = o[&Order::price];
        out.resting += o[&Order::quantity];
      }
      for (auto o : root.asks.template ordered<&Order::price>(tx)) {
        if (!out.ask) out.ask = o[&Order::price];
        out.resting += o[&Order::quantity];
      }
      return out;
    });
  }
  auto& pool() { return pool_; }

 private:
  // Fills `out` from the orders of the other side, the best price first, up to `worst`.
  static void match(auto& tx, Root& root, auto& side, Price worst, Placed& out) {
    for (auto order : side.template range<&Order::price>(tx, perdure::through(worst))) {
      if (out.resting == 0) break;
      const std::uint32_t there = order[&Order::quantity], filled = std::min(there, out.resting);
      out.fills.push_back({order[&Order::id], order[&Order::price], filled});
      out.resting -= filled;
      tx(root.traded) += filled;
      if (filled == there)
        side.erase(tx, order);
      else
        side.update(tx, order, [&](Order& o) { o.quantity -= filled; });
    }
  }
  static bool cancel_in(auto& tx, Root& root, auto& side, std::uint64_t id) {
    const auto order = side.take(tx, id);
    if (order) tx(root.cancelled) += order->quantity;
    return order.has_value();
  }

  perdure::Pool<Root> pool_;
};
using Book = BookOf<Root, Order>;

}  // namespace book
