// SPDX-License-Identifier: BSD-3-Clause
//
// What a terminal enters for a new order (TPC-C 5.11, clauses 2.1.6 and 2.4.1): a random district,
// a customer and items by NURand, 5 to 15 lines, and in 1 % of the orders an unused item number in
// the last line.
// Thread safety: an Input belongs to one terminal.
#pragma once

#include <array>
#include <cstdint>

#include "bench/harness/rng.hpp"
#include "bench/workloads/tpcc_rows.hpp"

namespace bench::tpcc {

struct Input {
  struct Line {
    std::uint32_t item = 0;
    std::uint8_t quantity = 0;
  };
  std::uint32_t district = 0, customer = 0, lines = 0;
  std::uint64_t entered = 0;
  bool unused_item = false;
  std::array<Line, max_lines> line{};
};

/// Uniform in [low, high].
inline std::uint32_t between(Rng& rng, std::uint32_t low, std::uint32_t high) noexcept {
  return low + static_cast<std::uint32_t>(rng.below(high - low + 1));
}

/// Clause 2.1.6; `c` is the run-time constant of the table's column.
inline std::uint32_t nurand(Rng& rng, std::uint32_t a, std::uint32_t low, std::uint32_t high,
                            std::uint32_t c) noexcept {
  return ((between(rng, 0, a) | between(rng, low, high)) + c) % (high - low + 1) + low;
}

inline Input draw(Rng& rng, std::uint64_t entered) noexcept {
  Input in;
  in.entered = entered;
  in.district = between(rng, 1, districts);
  in.customer = nurand(rng, 1023, 1, customers, 259);
  in.lines = between(rng, 5, max_lines);
  in.unused_item = between(rng, 1, 100) == 1;
  for (std::uint32_t i = 0; i < in.lines; ++i) {
    in.line[i].item = nurand(rng, 8191, 1, items, 7911);
    in.line[i].quantity = static_cast<std::uint8_t>(between(rng, 1, 10));
  }
  if (in.unused_item) in.line[in.lines - 1].item = items + 1;
  return in;
}

}  // namespace bench::tpcc
