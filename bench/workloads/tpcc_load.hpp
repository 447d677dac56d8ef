// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's initial population (revision 5.11, clause 4.3.3.1) of one warehouse, the columns of
// tpcc_rows.hpp: 100,000 items with their stock, ten districts of 3,000 customers and 3,000 orders,
// the last 900 of them undelivered. A transaction loads a few rows, so that a small log holds it.
// Thread safety: one caller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "bench/workloads/tpcc.hpp"

namespace bench::tpcc {

template <std::size_t n>
Text<n> random_text(Rng& rng) {
  Text<n> text;
  for (char& c : text) c = static_cast<char>('a' + rng.below(26));
  return text;
}

/// Clause 4.3.2.3: three syllables of a number below 1000.
inline Text<16> last_name(std::uint32_t number) {
  static constexpr const char* syllables[] = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                              "ESE", "ANTI",  "CALLY", "ATION", "EING"};
  Text<16> name{};
  std::size_t at = 0;
  for (const std::uint32_t digit : {number / 100, number / 10 % 10, number % 10})
    for (const char* c = syllables[digit]; *c != 0; ++c) name[at++] = *c;
  return name;
}

/// i_data, s_data: one in ten contains "ORIGINAL".
inline Text<16> random_data(Rng& rng) {
  Text<16> data = random_text<16>(rng);
  if (rng.below(10) == 0) std::memcpy(data.data() + rng.below(9), "ORIGINAL", 8);
  return data;
}

template <class Workload>
class Loader {
 public:
  using Model = typename Workload::Model;
  using Data = typename Workload::Data;

  template <class Host>
  static void load(Host& host) {
    // The results are the same for every system: a lambda may run twice, so what it stores is drawn
    // before it runs.
    Rng rng(4, 33);
    host.update([tax = between(rng, 0, 2000)](auto& tx, Data& root) {
      root.warehouse.insert(
          tx, 1, tx.template make<Warehouse<Model>>(std::uint64_t{tax}, std::uint64_t{30'000'000}));
      return true;
    });
    load_items(host, rng);
    for (std::uint32_t d = 1; d <= districts; ++d) {
      load_district(host, rng, d);
      load_orders(host, rng, d);
    }
  }

 private:
  template <class Host>
  static void load_items(Host& host, Rng& rng) {
    for (std::uint32_t i = 1; i <= items; ++i) {
      const ItemData item{i, between(rng, 100, 10'000), random_text<24>(rng), random_data(rng)};
      const StockCounts counts{.quantity = static_cast<std::uint16_t>(between(rng, 10, 100))};
      StockTexts texts;
      for (auto& info : texts.info) info = random_text<24>(rng);
      texts.data = random_data(rng);
      host.update([&](auto& tx, Data& root) {
        root.item.insert(tx, i, tx.template make<Item<Model>>(item));
        root.stock.insert(tx, stock_key(i), tx.template make<Stock<Model>>(counts, texts));
        return true;
      });
    }
  }

  template <class Host>
  static void load_district(Host& host, Rng& rng, std::uint32_t d) {
    host.update([d, tax = between(rng, 0, 2000)](auto& tx, Data& root) {
      const auto row =
          tx.template make<District<Model>>(std::uint64_t{first_orders + 1}, std::uint64_t{tax},
                                            std::uint64_t{3'000'000}, std::uint64_t{d});
      root.district.insert(tx, district_key(d), row);
      return true;
    });
    for (std::uint32_t c = 1; c <= customers; ++c) {
      CustomerData customer;
      customer.number = c;
      customer.last = last_name(c <= 1000 ? c - 1 : nurand(rng, 255, 0, 999, 173));
      customer.credit = rng.below(10) == 0 ? Text<2>{'B', 'C'} : Text<2>{'G', 'C'};
      customer.discount = static_cast<std::uint16_t>(between(rng, 0, 5000));
      host.update([&](auto& tx, Data& root) {
        root.customer.insert(tx, customer_key(d, c), tx.template make<Customer<Model>>(customer));
        return true;
      });
    }
  }

  template <class Host>
  static void load_orders(Host& host, Rng& rng, std::uint32_t d) {
    std::vector<std::uint32_t> customer(customers);  // a permutation
    std::iota(customer.begin(), customer.end(), 1);
    for (std::uint32_t i = customers - 1; i > 0; --i)
      std::swap(customer[i], customer[between(rng, 0, i)]);
    for (std::uint32_t o = 1; o <= first_orders; ++o) {
      const bool undelivered = o > first_orders - first_new_orders;
      OrderData order{o,
                      customer[o - 1],
                      1,
                      1,
                      static_cast<std::uint8_t>(d),
                      0,
                      static_cast<std::uint8_t>(between(rng, 5, max_lines)),
                      1};
      if (!undelivered) order.carrier = static_cast<std::uint8_t>(between(rng, 1, 10));
      LineData lines[max_lines];
      for (std::uint8_t n = 0; n < order.lines; ++n) {
        lines[n] = {.order = o,
                    .district = order.district,
                    .number = static_cast<std::uint8_t>(n + 1),
                    .item = between(rng, 1, items),
                    .quantity = 5};
        lines[n].info = random_text<24>(rng);
        if (undelivered)
          lines[n].amount = between(rng, 1, 999'999);
        else
          lines[n].delivered = 1;
      }
      host.update([&](auto& tx, Data& root) {
        Workload::enter(tx, root, order, undelivered);
        for (std::uint8_t n = 0; n < order.lines; ++n) Workload::add_line(tx, root, lines[n]);
        return true;
      });
    }
  }
};

}  // namespace bench::tpcc
