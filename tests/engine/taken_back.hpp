// SPDX-License-Identifier: BSD-3-Clause
//
// A workload for the explorer: transactions that are rolled back, and few others. What one has taken back is gone when others go on.
#pragma once

#include <array>

#include "perdure/crash/crashtest.hpp"

namespace perdure::test {

struct Words {
  std::array<p<std::uint64_t>, 1000> word;
};
struct Oops {};

struct TakenBack {
  using Root = Words;
  template <class Pool>
  void step(Pool& pool, crashtest::Step& step) const {
    const std::uint64_t from = step.number / 4 % 3;
    const bool gives_up = step.number % 4 != 3;
    try {
      pool.update([&](auto& tx, Words& r) {
        for (std::uint64_t w = from; w < from + 2; ++w) tx(r.word[w * 8]) = 100 + step.number;
        if (gives_up) throw Oops();
      });
    } catch (const Oops&) {}
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Words& r) const {
    std::uint64_t sum = 0;
    for (std::uint64_t w = 0; w < 4; ++w) sum = sum * 1009 + tx(r.word[w * 8]);
    return sum;
  }
};

}  // namespace perdure::test
