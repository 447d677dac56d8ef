// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's five transactions in SQL (revision 5.11, clauses 2.4 to 2.8), chosen by a deck of cards
// (5.2.4.2). Departures: tpcc_schema.hpp.
// Thread safety: the thread of the connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/sqlite/tpcc_load.hpp"

namespace bench::sqlite::tpcc {

enum class Kind : std::uint8_t { new_order, payment, order_status, delivery, stock_level };
inline constexpr std::array<const char*, 5> kind_names = {"new order", "payment", "order status",
                                                          "delivery", "stock level"};

class Terminal {
 public:
  Terminal(Connection& db, const Scale& scale, std::uint64_t seed)
      : db_(db), scale_(scale), rng_(seed, 7) {}

  /// Runs the next card's transaction. Throws Failure.
  Kind next() {
    if (deck_.empty()) {
      deck_.assign(10, Kind::new_order);
      deck_.insert(deck_.end(), 10, Kind::payment);
      deck_.insert(deck_.end(), {Kind::order_status, Kind::delivery, Kind::stock_level});
      for (std::size_t i = deck_.size() - 1; i > 0; --i)
        std::swap(deck_[i], deck_[rng_.below(i + 1)]);
    }
    const Kind kind = deck_.back();
    deck_.pop_back();
    ++time_;
    switch (kind) {
      case Kind::new_order: new_order(); break;
      case Kind::payment: payment(); break;
      case Kind::order_status: order_status(); break;
      case Kind::delivery: delivery(); break;
      case Kind::stock_level: stock_level(); break;
    }
    return kind;
  }
  /// New orders with an unused item, 1 % of them.
  [[nodiscard]] std::uint64_t rolled_back() const noexcept { return rolled_back_; }

 private:
  static constexpr std::int64_t first_time = 1'000'000'001;
  std::uint32_t any_warehouse() { return between(rng_, 1, scale_.warehouses); }
  std::uint32_t any_district() { return between(rng_, 1, districts); }
  std::uint32_t any_customer() {
    return bench::tpcc::nurand(rng_, 1023, 1, scale_.customers(), 259);
  }
  std::uint32_t other_than(std::uint32_t w) {
    const std::uint32_t other = between(rng_, 1, scale_.warehouses - 1);
    return other < w ? other : other + 1;
  }

  void new_order() {
    const std::uint32_t w = any_warehouse(), d = any_district(), c = any_customer(),
                        lines = between(rng_, 5, 15);
    const bool unused = between(rng_, 1, 100) == 1;
    struct Line {
      std::uint32_t item, supplier, quantity;
    };
    std::vector<Line> line(lines);
    bool all_local = true;
    for (Line& l : line) {
      l = {bench::tpcc::nurand(rng_, 8191, 1, scale_.items(), 7911), w, between(rng_, 1, 10)};
      if (scale_.warehouses > 1 && between(rng_, 1, 100) == 1)
        l.supplier = other_than(w), all_local = false;
    }
    if (unused) line.back().item = scale_.items() + 1;
    begin_();
    tax_(w), tax_.done();
    next_order_(w, d);
    const std::int64_t o = next_order_.number(0);
    next_order_.done();
    took_order_(w, d);
    customer_(w, d, c);
    [[maybe_unused]] const std::int64_t discount = customer_.number(0);
    customer_.done();
    add_order_(w, d, o, c, time_, lines, all_local ? 1 : 0);
    add_new_order_(w, d, o);
    for (std::uint32_t n = 0; n < lines; ++n) {
      const Line& l = line[n];
      if (!item_(l.item)) {
        rollback_();
        ++rolled_back_;
        return;
      }
      const std::int64_t price = item_.number(0);
      item_.done();
      Statement& stock = *stock_[d - 1];
      stock(l.supplier, l.item);
      const std::int64_t had = stock.number(0);
      const std::string info = stock.text(1);
      stock.done();
      sold_(had >= l.quantity + 10 ? had - l.quantity : had - l.quantity + 91, l.quantity,
            l.supplier == w ? 0 : 1, l.supplier, l.item);
      add_line_(w, d, o, n + 1, l.item, l.supplier, l.quantity, l.quantity * price, info);
    }
    commit_();
  }

  /// 60 % by last name: the middle one of those customers (2.5.2.2).
  std::uint32_t choose_customer(std::uint32_t w, std::uint32_t d) {
    if (between(rng_, 1, 100) > 60) return any_customer();
    const std::string last =
        last_name(bench::tpcc::nurand(rng_, 255, 0, std::min(999U, scale_.customers() - 1), 223));
    std::vector<std::int64_t> found;
    for (bool more = by_name_(w, d, last); more; more = by_name_.next())
      found.push_back(by_name_.number(0));
    return found.empty() ? any_customer()
                         : static_cast<std::uint32_t>(found[(found.size() - 1) / 2]);
  }

  void payment() {
    const std::uint32_t w = any_warehouse(), d = any_district(),
                        amount = between(rng_, 100, 500'000);
    std::uint32_t cw = w, cd = d;
    if (scale_.warehouses > 1 && between(rng_, 1, 100) > 85)
      cw = other_than(w), cd = any_district();
    begin_();
    const std::uint32_t c = choose_customer(cw, cd);
    paid_warehouse_(amount, w);
    warehouse_(w);
    const std::string warehouse = warehouse_.text(0);
    warehouse_.done();
    paid_district_(amount, w, d);
    district_(w, d);
    const std::string district = district_.text(0);
    district_.done();
    payer_(cw, cd, c);
    const bool bad = payer_.text(0) == "BC";
    std::string data = payer_.text(1);
    payer_.done();
    if (bad) {
      std::string paid;
      for (const std::uint32_t n : {c, cd, cw, d, w, amount})
        paid.append(std::to_string(n)).append(" ");
      data.insert(0, paid);
      data.resize(std::min<std::size_t>(data.size(), 500));
      paid_badly_(amount, data, cw, cd, c);
    } else {
      paid_(amount, cw, cd, c);
    }
    add_history_(c, cd, cw, d, w, time_, amount, warehouse + "    " + district);
    commit_();
  }

  void order_status() {
    const std::uint32_t w = any_warehouse(), d = any_district();
    begin_read_();
    const std::uint32_t c = choose_customer(w, d);
    balance_(w, d, c), balance_.done();
    if (last_order_(w, d, c)) {
      const std::int64_t o = last_order_.number(0);
      last_order_.done();
      for (bool more = lines_(w, d, o); more; more = lines_.next()) looked_ += lines_.number(0);
    }
    commit_();
  }

  void delivery() {
    const std::uint32_t w = any_warehouse(), carrier = between(rng_, 1, 10);
    begin_();
    for (std::uint32_t d = 1; d <= districts; ++d) {
      if (!oldest_(w, d)) continue;
      const std::int64_t o = oldest_.number(0);
      oldest_.done();
      no_longer_new_(w, d, o);
      orderer_(w, d, o);
      const std::int64_t c = orderer_.number(0);
      orderer_.done();
      carried_(carrier, w, d, o);
      delivered_(time_, w, d, o);
      total_(w, d, o);
      const std::int64_t total = total_.number(0);
      total_.done();
      owes_(total, w, d, c);
    }
    commit_();
  }

  void stock_level() {
    const std::uint32_t w = any_warehouse(), d = any_district(), threshold = between(rng_, 10, 20);
    begin_read_();
    next_order_(w, d);
    const std::int64_t o = next_order_.number(0);
    next_order_.done();
    low_(w, d, o, o - 20, w, threshold);
    looked_ += low_.number(0);
    low_.done();
    commit_();
  }

  Connection& db_;
  const Scale scale_;
  Rng rng_;
  std::vector<Kind> deck_;
  std::int64_t time_ = first_time, looked_ = 0;
  std::uint64_t rolled_back_ = 0;

  Statement begin_{db_, "begin immediate"}, begin_read_{db_, "begin"}, commit_{db_, "commit"},
      rollback_{db_, "rollback"};
  Statement tax_{db_, "select w_tax from warehouse where w_id = ?"};
  Statement next_order_{db_,
                        "select d_next_o_id, d_tax from district where d_w_id = ? and d_id = ?"};
  Statement took_order_{
      db_, "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = ? and d_id = ?"};
  Statement customer_{db_,
                      "select c_discount, c_last, c_credit from customer where c_w_id = ? and "
                      "c_d_id = ? and c_id = ?"};
  Statement add_order_{db_, "insert into orders values (?, ?, ?, ?, ?, null, ?, ?)"},
      add_new_order_{db_, "insert into new_order values (?, ?, ?)"};
  Statement item_{db_, "select i_price, i_name, i_data from item where i_id = ?"};
  std::array<std::unique_ptr<Statement>, districts> stock_ = [this] {
    std::array<std::unique_ptr<Statement>, districts> all;
    for (std::uint32_t d = 1; d <= districts; ++d)
      all[d - 1] = std::make_unique<Statement>(
          db_, std::string("select s_quantity, s_dist_")
                   .append(d < 10 ? "0" : "")
                   .append(std::to_string(d))
                   .append(", s_data from stock where s_w_id = ? and s_i_id = ?"));
    return all;
  }();
  Statement sold_{db_,
                  "update stock set s_quantity = ?1, s_ytd = s_ytd + ?2, s_order_cnt = s_order_cnt "
                  "+ 1, s_remote_cnt = s_remote_cnt + ?3 "
                  "where s_w_id = ?4 and s_i_id = ?5"};
  Statement add_line_{db_, "insert into order_line values (?, ?, ?, ?, ?, ?, null, ?, ?, ?)"};
  Statement by_name_{
      db_,
      "select c_id from customer where c_w_id = ? and c_d_id = ? and c_last = ? order by c_first"};
  Statement paid_warehouse_{db_, "update warehouse set w_ytd = w_ytd + ? where w_id = ?"};
  Statement warehouse_{db_,
                       "select w_name, w_street_1, w_street_2, w_city, w_state, w_zip from "
                       "warehouse where w_id = ?"};
  Statement paid_district_{db_,
                           "update district set d_ytd = d_ytd + ? where d_w_id = ? and d_id = ?"};
  Statement district_{db_,
                      "select d_name, d_street_1, d_street_2, d_city, d_state, d_zip from district "
                      "where d_w_id = ? and d_id = ?"};
  Statement payer_{db_,
                   "select c_credit, c_data, c_first, c_middle, c_last, c_discount, c_balance from "
                   "customer where c_w_id = ? and c_d_id = "
                   "? and c_id = ?"};
  Statement paid_{db_,
                  "update customer set c_balance = c_balance - ?1, c_ytd_payment = c_ytd_payment + "
                  "?1, c_payment_cnt = c_payment_cnt + 1 "
                  "where c_w_id = ?2 and c_d_id = ?3 and c_id = ?4"};
  Statement paid_badly_{db_,
                        "update customer set c_balance = c_balance - ?1, c_ytd_payment = "
                        "c_ytd_payment + ?1, c_payment_cnt = c_payment_cnt + 1, c_data = ?2 "
                        "where c_w_id = ?3 and c_d_id = ?4 and c_id = ?5"};
  Statement add_history_{db_, "insert into history values (?, ?, ?, ?, ?, ?, ?, ?)"};
  Statement balance_{db_,
                     "select c_balance, c_first, c_middle, c_last from customer where c_w_id = ? "
                     "and c_d_id = ? and c_id = ?"};
  Statement last_order_{db_,
                        "select o_id, o_entry_d, o_carrier_id from orders where o_w_id = ? and "
                        "o_d_id = ? and o_c_id = ? order by o_id desc limit 1"};
  Statement lines_{db_,
                   "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from "
                   "order_line where ol_w_id = ? and ol_d_id = "
                   "? and ol_o_id = ?"};
  Statement oldest_{
      db_,
      "select no_o_id from new_order where no_w_id = ? and no_d_id = ? order by no_o_id limit 1"};
  Statement no_longer_new_{
      db_, "delete from new_order where no_w_id = ? and no_d_id = ? and no_o_id = ?"};
  Statement orderer_{db_, "select o_c_id from orders where o_w_id = ? and o_d_id = ? and o_id = ?"};
  Statement carried_{
      db_, "update orders set o_carrier_id = ? where o_w_id = ? and o_d_id = ? and o_id = ?"};
  Statement delivered_{
      db_,
      "update order_line set ol_delivery_d = ? where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?"};
  Statement total_{
      db_,
      "select sum(ol_amount) from order_line where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?"};
  Statement owes_{db_,
                  "update customer set c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt "
                  "+ 1 where c_w_id = ? and c_d_id = ? and c_id = ?"};
  Statement low_{db_,
                 "select count(distinct s_i_id) from order_line, stock where ol_w_id = ? and "
                 "ol_d_id = ? and ol_o_id < ? and ol_o_id >= ? "
                 "and s_w_id = ? "
                 "and s_i_id = ol_i_id and s_quantity < ?"};
};

}  // namespace bench::sqlite::tpcc
