// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's consistency conditions in SQL (revision 5.11, clause 3.3.2), all that hold at any time: 1
// to 10 and 12 (11 concerns the initial population).
// Thread safety: the thread of the connection.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/sqlite/connection.hpp"

namespace bench::sqlite::tpcc {

/// The number of rows that break a condition, and the output of SQLite's integrity check. Empty if
/// everything is right.
inline std::vector<std::string> problems(Connection& db) {
  static constexpr std::pair<const char*, const char*> conditions[] = {
      {"1: w_ytd is the sum of d_ytd",
       "select count(*) from warehouse where w_ytd != (select sum(d_ytd) from district where "
       "d_w_id = w_id)"},
      {"2: d_next_o_id - 1 is the newest order",
       "select count(*) from district where d_next_o_id - 1 != (select max(o_id) from orders where "
       "o_w_id = d_w_id and o_d_id = d_id) "
       "or d_next_o_id - 1 != (select max(no_o_id) from new_order where no_w_id = d_w_id and "
       "no_d_id = d_id)"},
      {"3: new orders follow one another",
       "select count(*) from (select 1 from new_order group by no_w_id, no_d_id having "
       "max(no_o_id) - min(no_o_id) + 1 != count(*))"},
      {"4: lines of a district",
       "select count(*) from district where (select sum(o_ol_cnt) from orders where o_w_id = "
       "d_w_id and o_d_id = d_id) != "
       "(select count(*) from order_line where ol_w_id = d_w_id and ol_d_id = d_id)"},
      {"5: without a carrier, it is new",
       "select count(*) from orders where (o_carrier_id is null) != exists (select 1 from "
       "new_order where no_w_id = o_w_id and no_d_id = "
       "o_d_id and no_o_id = o_id)"},
      {"6: lines of an order",
       "select count(*) from orders where o_ol_cnt != (select count(*) from order_line where "
       "ol_w_id = o_w_id and ol_d_id = o_d_id and "
       "ol_o_id = o_id)"},
      {"7: delivered lines are of orders with a carrier",
       "select count(*) from order_line join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and "
       "o_id = ol_o_id where (ol_delivery_d is "
       "null) != (o_carrier_id is null)"},
      {"8: w_ytd is what was paid",
       "select count(*) from warehouse where w_ytd != (select sum(h_amount) from history where "
       "h_w_id = w_id)"},
      {"9: d_ytd is what was paid",
       "select count(*) from district where d_ytd != (select sum(h_amount) from history where "
       "h_w_id = d_w_id and h_d_id = d_id)"},
      {"10: c_balance is what was delivered, less what was paid",
       "with paid as (select h_c_w_id w, h_c_d_id d, h_c_id c, sum(h_amount) s from history group "
       "by 1, 2, 3), "
       "got as (select o_w_id w, o_d_id d, o_c_id c, sum(ol_amount) s from orders join order_line "
       "on ol_w_id = o_w_id and ol_d_id = o_d_id "
       "and ol_o_id = o_id "
       "where ol_delivery_d is not null group by 1, 2, 3) "
       "select count(*) from customer left join paid on paid.w = c_w_id and paid.d = c_d_id and "
       "paid.c = c_id left join got on got.w = "
       "c_w_id and got.d = c_d_id and "
       "got.c = c_id where c_balance != coalesce(got.s, 0) - coalesce(paid.s, 0) or c_balance + "
       "c_ytd_payment != coalesce(got.s, 0)"},
  };
  std::vector<std::string> found;
  for (const auto& [name, sql] : conditions)
    if (const std::string rows = db.run(sql); rows != "0")
      found.push_back(std::string("condition ")
                          .append(name)
                          .append(": broken in ")
                          .append(rows)
                          .append(" rows"));
  if (const std::string sound = db.run("pragma integrity_check"); sound != "ok")
    found.push_back(std::string("integrity_check: ").append(sound));
  return found;
}

}  // namespace bench::sqlite::tpcc
