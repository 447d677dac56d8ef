// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of the order book (order_book.hpp): an order may have a time at which it ends, and has
// the quantity that was placed, not only the quantity that is left. An owner's orders are found in
// the order of their prices. For orders that version 1 left, a step sets the placed quantity to the
// one that is left. docs/version-2.md goes through this program.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include <perdure.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/order_book.hpp"

namespace book::v2 {

using Time = std::chrono::sys_seconds;

// An order that rests in the book.
struct Order {
  std::uint64_t id = 0;
  Price price = 0;
  std::uint32_t quantity = 0;  // the quantity that is left
  std::string owner;
  std::uint32_t placed = 0;   // the quantity when it was placed
  std::optional<Time> until;  // empty: it rests until it is cancelled
};

struct Root {
  perdure::p<std::uint64_t> last_id, entered, traded, cancelled;
  perdure::table<Order, perdure::key<&Order::id>, perdure::indexed_descending<&Order::price>,
                 perdure::dropped<perdure::indexed<&Order::owner>>,
                 perdure::indexed<&Order::owner, &Order::price>, perdure::expires<&Order::until>>
      bids;
  perdure::table<Order, perdure::key<&Order::id>, perdure::indexed<&Order::price>,
                 perdure::dropped<perdure::indexed<&Order::owner>>,
                 perdure::indexed<&Order::owner, &Order::price>, perdure::expires<&Order::until>>
      asks;
};

// The step. A field's initialiser could not do this, since it does not know the row.
inline void what_is_left_was_placed(const book::Order& before, Order& now) {
  now.placed = before.quantity;
}
inline std::vector<perdure::MigrationStep> steps() {
  return {perdure::step<book::Order, Order>("bids", what_is_left_was_placed),
          perdure::step<book::Order, Order>("asks", what_is_left_was_placed)};
}

class Book : public BookOf<Root, Order> {
 public:
  explicit Book(const std::string& path, perdure::Options options = {})
      : BookOf(path, (options.migrate.steps = steps(), options)) {}

  Placed place(Side side, Order order) {
    order.placed = order.quantity;
    return BookOf::place(side, order);
  }
  // Cancels the orders whose time is over, and returns their number.
  std::uint64_t expire(Time now) {
    return pool()
        .update([&](auto& tx, Root& root) {
          std::uint64_t expired = 0;
          const auto cancel_due = [&](auto& side) {
            for (auto order : side.template range<&Order::until>(tx, perdure::through(now))) {
              tx(root.cancelled) += order[&Order::quantity];
              side.erase(tx, order);
              ++expired;
            }
          };
          cancel_due(root.bids), cancel_due(root.asks);
          return expired;
        })
        .value();
  }
};

}  // namespace book::v2
