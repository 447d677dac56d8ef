// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C in SQL (revision 5.11): its nine tables (clause 1.3), all columns, in SQLite's types, and
// the size of the population. Departures, here and in tpcc_load.hpp, tpcc_transactions.hpp: amounts
// are whole cents, rates ten-thousandths, dates seconds; a population may be scaled down; terminals
// have no keying and thinking times and no screens; a delivery is done at once and not queued; one
// connection does everything; no foreign keys are declared (SQLite does not check them by default);
// one deck of cards (5.2.4.2) chooses the transactions.
#pragma once

#include <cstdint>

namespace bench::sqlite::tpcc {

struct Scale {
  std::uint32_t warehouses = 1;
  std::uint32_t divisor = 1;  ///< of a warehouse's rows: items, customers, orders
  [[nodiscard]] std::uint32_t items() const { return 100'000 / divisor; }
  [[nodiscard]] std::uint32_t customers() const { return 3000 / divisor; }  // per district
  [[nodiscard]] std::uint32_t orders() const { return customers(); }        // per district, loaded
  [[nodiscard]] std::uint32_t new_orders() const { return 900 / divisor; }  // of the loaded orders
};
inline constexpr std::uint32_t districts = 10, largest_divisor = 100;

inline constexpr const char* schema = R"sql(
create table warehouse (w_id integer primary key, w_name text, w_street_1 text, w_street_2 text,
  w_city text, w_state text, w_zip text, w_tax integer, w_ytd integer);
create table district (d_w_id integer, d_id integer, d_name text, d_street_1 text, d_street_2 text,
  d_city text, d_state text, d_zip text, d_tax integer, d_ytd integer, d_next_o_id integer,
  primary key (d_w_id, d_id)) without rowid;
create table customer (c_w_id integer, c_d_id integer, c_id integer, c_first text, c_middle text,
  c_last text, c_street_1 text, c_street_2 text, c_city text, c_state text, c_zip text,
  c_phone text, c_since integer, c_credit text, c_credit_lim integer, c_discount integer,
  c_balance integer, c_ytd_payment integer, c_payment_cnt integer, c_delivery_cnt integer,
  c_data text, primary key (c_w_id, c_d_id, c_id));
create table history (h_c_id integer, h_c_d_id integer, h_c_w_id integer, h_d_id integer,
  h_w_id integer, h_date integer, h_amount integer, h_data text);
create table new_order (no_w_id integer, no_d_id integer, no_o_id integer,
  primary key (no_w_id, no_d_id, no_o_id)) without rowid;
create table orders (o_w_id integer, o_d_id integer, o_id integer, o_c_id integer,
  o_entry_d integer, o_carrier_id integer, o_ol_cnt integer, o_all_local integer,
  primary key (o_w_id, o_d_id, o_id)) without rowid;
create table order_line (ol_w_id integer, ol_d_id integer, ol_o_id integer, ol_number integer,
  ol_i_id integer, ol_supply_w_id integer, ol_delivery_d integer, ol_quantity integer,
  ol_amount integer, ol_dist_info text,
  primary key (ol_w_id, ol_d_id, ol_o_id, ol_number)) without rowid;
create table item (i_id integer primary key, i_im_id integer, i_name text, i_price integer,
  i_data text);
create table stock (s_w_id integer, s_i_id integer, s_quantity integer, s_dist_01 text,
  s_dist_02 text, s_dist_03 text, s_dist_04 text, s_dist_05 text, s_dist_06 text, s_dist_07 text,
  s_dist_08 text, s_dist_09 text, s_dist_10 text, s_ytd integer, s_order_cnt integer,
  s_remote_cnt integer, s_data text, primary key (s_w_id, s_i_id));
)sql";
/// Created after the load.
inline constexpr const char* indexes = R"sql(
create index customer_name on customer (c_w_id, c_d_id, c_last, c_first);
create index orders_customer on orders (o_w_id, o_d_id, o_c_id, o_id);
)sql";

}  // namespace bench::sqlite::tpcc
