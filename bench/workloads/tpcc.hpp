// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's new order transaction (revision 5.11, clause 2.4) over tables of a chosen type and
// layout. `Table<Model, Row>` is a B+-tree (tpcc_tree.hpp), or another type with its find, insert,
// each, each_block and audit. `parts` is the layout of orders, new_order and order_line:
//   1, naive       one table each, with a compound key of warehouse, district, order (and line)
//   10, optimised  an array of ten tables, one per district, each with the order (and line) alone
//                  as its key (papers: REWIND, VLDB '15, section 5.3)
// Departures from TPC-C: terminals issue only new orders, without keying and thinking times and
// without a screen; there is one warehouse, so no remote order lines; the random district of each
// order is the only tie of a terminal to a district; columns as in tpcc_rows.hpp; an order's date
// is a number; tpm counts every new order, including the 1 % that are rolled back. A host that does
// not roll back (Host::rolls_back false) leaves what an order with an unused item has done until
// then.
// Thread safety: the system's, or the caller's locks around update (bench/tpcc/locks.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "bench/workloads/tpcc_input.hpp"
#include "bench/workloads/tpcc_rows.hpp"

namespace bench::tpcc {

/// Thrown out of update by an order with an unused item: the system rolls back.
struct RolledBack {};

/// The answer that the terminal shows.
struct Answer {
  std::uint64_t total = 0;  ///< in cents
  std::uint32_t brand = 0;  ///< lines whose item is "brand", not "generic"
  bool complete = false;
};

/// Perdure's own handle, with the names that tables call.
template <class Tx>
struct WalkReader {
  Tx& tx;
  template <class T>
  auto get(const T& x) {
    return tx.read(x);
  }
};

template <class Model, template <class, class> class Table, unsigned parts_>
struct Root {
  static constexpr const char* layout_id =
      parts_ == 1 ? "bench::tpcc::Root/naive/1" : "bench::tpcc::Root/optimised/1";
  static constexpr unsigned parts = parts_;
  static_assert(parts == 1 || parts == districts, "the order tables are one, or one a district");

  Table<Model, Warehouse<Model>> warehouse;
  Table<Model, District<Model>> district;
  Table<Model, Customer<Model>> customer;
  Table<Model, Item<Model>> item;
  Table<Model, Stock<Model>> stock;
  Table<Model, Order<Model>> orders[parts];
  Table<Model, NewOrder<Model>> new_orders[parts];
  Table<Model, OrderLine<Model>> lines[parts];

  static constexpr unsigned part(std::uint32_t d) noexcept { return parts == 1 ? 0 : d - 1; }
  static constexpr std::uint64_t order_key(std::uint32_t d, std::uint64_t order) noexcept {
    return parts == 1 ? district_key(d) << 32 | order : order;
  }
  static constexpr std::uint64_t line_key(std::uint32_t d, std::uint64_t order,
                                          std::uint64_t number) noexcept {
    return order_key(d, order) << 4 | number;
  }

  /// For Perdure's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    WalkReader<Tx> reader{tx};
    each_table([&](const char*, const auto& table) { table.each_block(reader, f); });
  }

  template <class F>
  void each_table(F f) const {
    f("warehouse", warehouse);
    f("district", district);
    f("customer", customer);
    f("item", item);
    f("stock", stock);
    for (const auto& table : orders) f("orders", table);
    for (const auto& table : new_orders) f("new_order", table);
    for (const auto& table : lines) f("order_line", table);
  }
};

template <class Model_, template <class, class> class Table, unsigned parts>
struct Tpcc {
  using Model = Model_;
  using Data = Root<Model, Table, parts>;

  /// One new order, clause 2.4.2.2. Throws RolledBack; if the system does not roll back, the answer
  /// is incomplete.
  template <class Tx>
  static Answer new_order(Tx& tx, Data& root, const Input& in, bool rolls_back) {
    const std::uint32_t d = in.district;
    const std::uint64_t warehouse_tax = tx.get(root.warehouse.find(tx, 1)->tax);
    const auto district = root.district.find(tx, district_key(d));
    const std::uint64_t district_tax = tx.get(district->tax);
    const auto number = static_cast<std::uint32_t>(tx.get(district->next_order));
    tx.set(district->next_order, number + 1);
    const CustomerData customer =
        tx.get(root.customer.find(tx, customer_key(d, in.customer))->data);

    enter(tx, root,
          {number, in.customer, in.entered, 1, static_cast<std::uint8_t>(d), 0,
           static_cast<std::uint8_t>(in.lines), 1},
          true);
    Answer answer;
    for (std::uint32_t i = 0; i < in.lines; ++i) {
      const auto row = root.item.find(tx, in.line[i].item);
      if (!row) {
        if (rolls_back) throw RolledBack();
        return answer;
      }
      const ItemData item = tx.get(row->data);
      const auto stock = root.stock.find(tx, stock_key(in.line[i].item));
      StockCounts counts = tx.get(stock->counts);
      const std::uint8_t quantity = in.line[i].quantity;
      counts.quantity = static_cast<std::uint16_t>(counts.quantity - quantity +
                                                   (counts.quantity >= quantity + 10 ? 0 : 91));
      counts.ytd += quantity;
      ++counts.orders;
      tx.set(stock->counts, counts);
      if (original(item.data) && original(tx.get(stock->data))) ++answer.brand;
      LineData line{.order = number,
                    .district = static_cast<std::uint8_t>(d),
                    .number = static_cast<std::uint8_t>(i + 1)};
      line.item = in.line[i].item;
      line.amount = quantity * item.price;
      line.quantity = quantity;
      line.info = tx.get(stock->info[d - 1]);
      add_line(tx, root, line);
      answer.total += line.amount;
    }
    answer.total = answer.total * (10'000 - customer.discount) / 10'000 *
                   (10'000 + warehouse_tax + district_tax) / 10'000;
    answer.complete = true;
    return answer;
  }

  /// An order and, if it is not delivered, its row in new_order.
  template <class Tx>
  static void enter(Tx& tx, Data& root, const OrderData& order, bool undelivered) {
    const std::uint64_t key = Data::order_key(order.district, order.order);
    const unsigned part = Data::part(order.district);
    root.orders[part].insert(tx, key, tx.template make<Order<Model>>(order));
    if (!undelivered) return;
    const NewOrderData data{.order = order.order, .district = order.district};
    root.new_orders[part].insert(tx, key, tx.template make<NewOrder<Model>>(data));
  }

  template <class Tx>
  static void add_line(Tx& tx, Data& root, const LineData& line) {
    root.lines[Data::part(line.district)].insert(
        tx, Data::line_key(line.district, line.order, line.number),
        tx.template make<OrderLine<Model>>(line));
  }

 private:
  static bool original(const Text<16>& text) noexcept {
    return std::string_view(text.data(), text.size()).find("ORIGINAL") != std::string_view::npos;
  }
};

}  // namespace bench::tpcc
