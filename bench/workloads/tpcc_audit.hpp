// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's consistency conditions (revision 5.11, clause 3.3.2) that new order can break, for each
// district d:
//   1  w_ytd is the sum of d_ytd (as loaded: new order does not change them)
//   2  d_next_o_id - 1 = max(o_id) = max(no_o_id)
//   3  max(no_o_id) - min(no_o_id) + 1 = rows of new_order
//   4  the sum of o_ol_cnt = rows of order_line
//   5  an order has no carrier if it has a row in new_order, and only then
//   6  o_ol_cnt = rows of order_line of this order, numbered from 1
//   7  a line has no delivery date if its order has no carrier, and only then
// and in addition: no order number is left out; the stock's s_order_cnt and s_ytd sum up to the
// lines and quantities of the new orders; there are as many orders beyond the loaded ones as were
// committed; and every table is whole. If orders with an unused item are not rolled back, each of
// them lacks its last line.
// Thread safety: while no thread updates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/workloads/tpcc.hpp"

namespace bench::tpcc {

struct Expected {
  std::optional<std::uint64_t> orders;  ///< beyond the loaded ones; absent: not known
  std::uint64_t unfinished = 0;         ///< orders that lack their last line
};

template <class Data>
class Audit {
 public:
  template <class Tx>
  Audit(Tx& tx, const Data& root, const Expected& expected) {
    root.each_table([&](const char* name, const auto& table) { table.audit(tx, name, problems_); });
    collect(tx, root);
    std::uint64_t ytd = 0, unfinished = 0;
    const std::uint64_t before = entered_;
    for (std::uint32_t d = 1; d <= districts; ++d) {
      const auto row = root.district.find(tx, district_key(d));
      if (!row) {
        problems_.push_back("district " + std::to_string(d) + " is not there");
        continue;
      }
      ytd += tx.get(row->ytd);
      district(d, tx.get(row->next_order), unfinished);
    }
    const auto warehouse = root.warehouse.find(tx, 1);
    if (!warehouse || tx.get(warehouse->ytd) != ytd)
      problems_.push_back("condition 1: w_ytd is not the sum of d_ytd, " + std::to_string(ytd));
    equal("condition 6: orders that lack their last line", unfinished, expected.unfinished);
    if (expected.orders) equal("orders more than were loaded", entered_ - before, *expected.orders);
    std::uint64_t sold = 0, ordered = 0;
    root.stock.each(tx, [&](std::uint64_t, const auto& stock) {
      const StockCounts counts = tx.get(stock->counts);
      ordered += counts.orders;
      sold += counts.ytd;
    });
    equal("the sum of s_order_cnt", ordered, new_lines_);
    equal("the sum of s_ytd", sold, new_quantity_);
  }
  [[nodiscard]] std::vector<std::string> problems() && { return std::move(problems_); }

 private:
  struct Seen {
    OrderData order;
    std::uint32_t lines = 0, numbers = 0, undelivered = 0;
    bool waits = false;  ///< it has a row in new_order
  };

  template <class Tx>
  void collect(Tx& tx, const Data& root) {
    for (unsigned p = 0; p < Data::parts; ++p) {
      root.orders[p].each(tx, [&](std::uint64_t, const auto& row) {
        const OrderData order = tx.get(row->data);
        if (!place(order.district, order.order, "an order")) return;
        auto& own = seen_[order.district - 1];
        if (!own.emplace(order.order, Seen{order}).second)
          problems_.push_back("order " + name(order.district, order.order) + " is there twice");
      });
      root.new_orders[p].each(tx, [&](std::uint64_t, const auto& row) {
        const NewOrderData data = tx.get(row->data);
        if (Seen* const seen = of(data.district, data.order, "a row of new_order"))
          seen->waits = true;
      });
      root.lines[p].each(tx, [&](std::uint64_t, const auto& row) {
        const LineData line = tx.get(row->data);
        Seen* const seen = of(line.district, line.order, "an order line");
        if (seen == nullptr) return;
        ++seen->lines;
        seen->numbers |= 1U << line.number;
        if (line.delivered == 0) ++seen->undelivered;
        if (line.order <= first_orders) return;
        ++new_lines_;
        new_quantity_ += line.quantity;
      });
    }
  }

  void district(std::uint32_t d, std::uint64_t next, std::uint64_t& unfinished) {
    const auto& own = seen_[d - 1];
    const std::string who = "district " + std::to_string(d) + ", ";
    std::uint64_t newest = 0, newest_waiting = 0, oldest_waiting = ~0ULL, waiting = 0, lines = 0,
                  counted = 0, carried = 0, numbered = 0, dated = 0;
    std::uint64_t unfinished_here = 0;
    for (const auto& [number, seen] : own) {
      newest = std::max<std::uint64_t>(newest, number);
      if (seen.waits) {
        newest_waiting = std::max<std::uint64_t>(newest_waiting, number);
        oldest_waiting = std::min<std::uint64_t>(oldest_waiting, number);
        ++waiting;
      }
      lines += seen.lines;
      counted += seen.order.lines;
      if (seen.waits != (seen.order.carrier == 0)) ++carried;
      if (seen.numbers != (1U << (seen.lines + 1)) - 2) ++numbered;
      if (seen.lines + 1 == seen.order.lines)
        ++unfinished_here;
      else if (seen.lines != seen.order.lines)
        ++numbered;
      if (seen.undelivered != (seen.order.carrier == 0 ? seen.lines : 0)) ++dated;
    }
    equal(who + "condition 2: max(o_id) + 1", newest + 1, next);
    equal(who + "condition 2: max(no_o_id)", newest_waiting, newest);
    equal(who + "condition 3: rows of new_order", waiting,
          waiting == 0 ? 0 : newest_waiting - oldest_waiting + 1);
    equal(who + "condition 4: rows of order_line", lines + unfinished_here, counted);
    equal(who + "condition 5: orders whose carrier and new_order disagree", carried, 0);
    equal(who + "condition 6: orders with other lines than o_ol_cnt says", numbered, 0);
    equal(who + "condition 7: orders whose carrier and delivery dates disagree", dated, 0);
    equal(who + "orders", own.size(), newest);
    unfinished += unfinished_here;
    entered_ += own.size() - std::min<std::uint64_t>(own.size(), first_orders);
  }

  void equal(const std::string& what, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      problems_.push_back(what + ": found " + std::to_string(found) + ", expected " +
                          std::to_string(expected));
  }
  static std::string name(std::uint64_t d, std::uint64_t o) {
    return std::to_string(o) + " of district " + std::to_string(d);
  }
  bool place(std::uint64_t d, std::uint64_t o, const char* what) {
    if (d >= 1 && d <= districts && o != 0) return true;
    problems_.push_back(std::string(what) + " names order " + name(d, o) +
                        ", expected districts 1 to 10, orders from 1");
    return false;
  }
  Seen* of(std::uint64_t d, std::uint32_t o, const char* what) {
    if (!place(d, o, what)) return nullptr;
    const auto found = seen_[d - 1].find(o);
    if (found != seen_[d - 1].end()) return &found->second;
    problems_.push_back(std::string(what) + " names order " + name(d, o) + ", which is not there");
    return nullptr;
  }

  std::unordered_map<std::uint32_t, Seen> seen_[districts];
  std::uint64_t new_lines_ = 0, new_quantity_ = 0, entered_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace bench::tpcc
