// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's initial population in SQL (revision 5.11, clause 4.3.3.1), scaled. Thread safety: the
// thread of the connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/sqlite/connection.hpp"
#include "bench/sqlite/tpcc_schema.hpp"
#include "bench/workloads/tpcc_input.hpp"
#include "bench/workloads/tpcc_load.hpp"

namespace bench::sqlite::tpcc {

using bench::tpcc::between;

/// A number of letters and digits in [low, high] (4.3.2.2).
inline std::string random_string(Rng& rng, std::uint32_t low, std::uint32_t high) {
  static constexpr char alphabet[] =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string text(between(rng, low, high), ' ');
  for (char& c : text) c = alphabet[rng.below(sizeof alphabet - 1)];
  return text;
}
inline std::string random_digits(Rng& rng, std::uint32_t n) {
  std::string text(n, ' ');
  for (char& c : text) c = static_cast<char>('0' + rng.below(10));
  return text;
}
/// 4.3.2.7
inline std::string random_zip(Rng& rng) { return random_digits(rng, 4) + "11111"; }
/// i_data, s_data: one in ten contains "ORIGINAL".
inline std::string random_original(Rng& rng) {
  std::string text = random_string(rng, 26, 50);
  if (rng.below(10) == 0) text.replace(rng.below(text.size() - 7), 8, "ORIGINAL");
  return text;
}
/// 4.3.2.3
inline std::string last_name(std::uint32_t number) { return bench::tpcc::last_name(number).data(); }

class Loader {
 public:
  Loader(Connection& db, const Scale& scale) : db_(db), scale_(scale) {}

  /// Loads in transactions of one district, or of 1000 items, which a log of a few megabytes can
  /// take.
  void load() {
    db_.run(schema);
    items();
    for (std::uint32_t w = 1; w <= scale_.warehouses; ++w) {
      warehouse(w);
      for (std::uint32_t d = 1; d <= districts; ++d) district(w, d);
    }
    db_.run(indexes);
  }

 private:
  static constexpr std::int64_t loaded_at = 1'000'000'000;

  template <class F>
  void in_parts(std::uint32_t n, std::uint32_t part, F&& f) {
    for (std::uint32_t from = 1; from <= n; from += part) {
      db_.run("begin");
      for (std::uint32_t i = from; i < std::min(from + part, n + 1); ++i) f(i);
      db_.run("commit");
    }
  }

  void items() {
    Statement add(db_, "insert into item values (?, ?, ?, ?, ?)");
    in_parts(scale_.items(), 1000, [&](std::uint32_t i) {
      add(i, between(rng_, 1, 10'000), random_string(rng_, 14, 24), between(rng_, 100, 10'000),
          random_original(rng_));
    });
  }

  void warehouse(std::uint32_t w) {
    Statement add(db_, "insert into warehouse values (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    add(w, random_string(rng_, 6, 10), random_string(rng_, 10, 20), random_string(rng_, 10, 20),
        random_string(rng_, 10, 20), random_string(rng_, 2, 2), random_zip(rng_),
        between(rng_, 0, 2000), scale_.customers() * districts * 1000);
    Statement stock(db_,
                    "insert into stock values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?)");
    in_parts(scale_.items(), 1000, [&](std::uint32_t i) {
      std::array<std::string, districts> info;
      for (auto& text : info) text = random_string(rng_, 24, 24);
      stock(w, i, between(rng_, 10, 100), info[0], info[1], info[2], info[3], info[4], info[5],
            info[6], info[7], info[8], info[9], random_original(rng_));
    });
  }

  void district(std::uint32_t w, std::uint32_t d) {
    Statement add(db_, "insert into district values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    add(w, d, random_string(rng_, 6, 10), random_string(rng_, 10, 20), random_string(rng_, 10, 20),
        random_string(rng_, 10, 20), random_string(rng_, 2, 2), random_zip(rng_),
        between(rng_, 0, 2000), scale_.customers() * 1000, scale_.orders() + 1);
    Statement customer(db_,
                       "insert into customer values (?, ?, ?, ?, 'OE', ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                       "5000000, ?, -1000, 1000, 1, 0, ?)");
    Statement history(db_, "insert into history values (?, ?, ?, ?, ?, ?, 1000, ?)");
    in_parts(scale_.customers(), 1000, [&](std::uint32_t c) {
      const std::string last =
          last_name(c <= 1000 ? c - 1 : bench::tpcc::nurand(rng_, 255, 0, 999, 173));
      customer(w, d, c, random_string(rng_, 8, 16), last, random_string(rng_, 10, 20),
               random_string(rng_, 10, 20), random_string(rng_, 10, 20), random_string(rng_, 2, 2),
               random_zip(rng_), random_digits(rng_, 16), loaded_at,
               rng_.below(10) == 0 ? "BC" : "GC", between(rng_, 0, 5000),
               random_string(rng_, 300, 500));
      history(c, d, w, d, w, loaded_at, random_string(rng_, 12, 24));
    });
    orders(w, d);
  }

  void orders(std::uint32_t w, std::uint32_t d) {
    std::vector<std::uint32_t> customer(scale_.customers());  // a permutation
    std::iota(customer.begin(), customer.end(), 1);
    for (std::size_t i = customer.size() - 1; i > 0; --i)
      std::swap(customer[i], customer[rng_.below(i + 1)]);
    Statement add(db_, "insert into orders values (?, ?, ?, ?, ?, ?, ?, 1)"),
        waits(db_, "insert into new_order values (?, ?, ?)");
    Statement line(db_, "insert into order_line values (?, ?, ?, ?, ?, ?, ?, 5, ?, ?)");
    in_parts(scale_.orders(), 1000, [&](std::uint32_t o) {
      const bool delivered = o <= scale_.orders() - scale_.new_orders();
      const std::uint32_t lines = between(rng_, 5, 15);
      if (delivered)
        add(w, d, o, customer[o - 1], loaded_at, between(rng_, 1, 10), lines);
      else
        add(w, d, o, customer[o - 1], loaded_at, nullptr, lines), waits(w, d, o);
      for (std::uint32_t n = 1; n <= lines; ++n) {
        const std::uint32_t item = between(rng_, 1, scale_.items());
        if (delivered)
          line(w, d, o, n, item, w, loaded_at, 0, random_string(rng_, 24, 24));
        else
          line(w, d, o, n, item, w, nullptr, between(rng_, 1, 999'999),
               random_string(rng_, 24, 24));
      }
    });
  }

  Connection& db_;
  const Scale scale_;
  Rng rng_{4, 33};
};

}  // namespace bench::sqlite::tpcc
