// SPDX-License-Identifier: BSD-3-Clause
//
// The operations on the hash table and the trees: keys drawn uniformly from 1 M (or the number that
// the table names), half of them present at the start; the parameter is the percentage of updates
// (100, 10, 0), the others are look-ups. An update is one transaction (or one of
// Cell::per_transaction in it) that inserts the key if it is absent and removes it if it is present
// (as NV-Heaps defined these two benchmarks and Blurred Persistence and others adopted them): every
// update writes, half of them insert and half remove, the size stays about the same. Invariant: as
// many elements as at the start, plus the inserts, minus the removes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/timed.hpp"

namespace bench {

/// `Table<Model>` has Root and static toggle(tx, root, key, value) -> +1 inserted or -1 removed,
/// contains(tx, root, key) -> bool, prepare(host, setting) and audit(host, problems) -> number of
/// elements.
template <class Table>
struct KeySet {
  using Root = typename Table::Root;
  static constexpr const char* structure = Table::structure;
  static constexpr std::uint64_t keys = [] {
    if constexpr (requires { Table::keys; }) return Table::keys;
    return std::uint64_t{1'000'000};
  }();
  static constexpr std::uint64_t filled = keys / 2;

  template <class Host>
  static void fill(Host& host, const Setting& setting) {
    Table::prepare(host, setting);
    std::vector<std::uint32_t> order(keys);
    std::iota(order.begin(), order.end(), 0U);
    Rng rng(20, 20);
    for (std::uint64_t i = keys; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    constexpr std::uint64_t a_transaction = 8;
    for (std::uint64_t from = 0; from < filled; from += a_transaction) {
      host.update([&order, from](auto& tx, Root& root) {
        for (std::uint64_t i = from; i < from + a_transaction; ++i)
          Table::toggle(tx, root, order[i], order[i] + 1ULL);
        return true;
      });
    }
  }

  static void check_parameter(unsigned percent) {
    if (percent > 100)
      throw std::invalid_argument("found " + std::to_string(percent) +
                                  " % updates, expected 0 to 100");
  }

  template <class Host>
  static Step step(Host& host, const Cell& cell, unsigned percent, Rng& rng) {
    if (cell.per_transaction != 1) return many(host, cell.per_transaction, percent, rng);
    const std::uint64_t drawn = rng();
    const std::uint64_t key = ((drawn >> 32) * keys) >> 32;
    if (static_cast<std::uint32_t>(drawn) % 100 >= percent) {
      found_ +=
          host.view([key](auto& tx, const Root& root) { return Table::contains(tx, root, key); })
              ? 1U
              : 0U;
      return {};
    }
    return {.wrote = true, .grown = host.update([key](auto& tx, Root& root) {
              return Table::toggle(tx, root, key, key + 1);
            })};
  }

  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t grown) {
    std::vector<std::string> problems;
    const std::uint64_t found = Table::audit(host, problems);
    const auto expected = static_cast<std::uint64_t>(static_cast<std::int64_t>(filled) + grown);
    if (found != expected) {
      problems.push_back(std::string(structure) + ": found " + std::to_string(found) +
                         " elements, expected " + std::to_string(expected));
    }
    return problems;
  }

 private:
  /// Runs several of them in one transaction.
  template <class Host>
  static Step many(Host& host, unsigned n, unsigned percent, Rng& rng) {
    struct Op {
      std::uint64_t key;
      bool update;
    };
    thread_local std::vector<Op> ops;  // drawn in advance: a transaction may run again
    ops.resize(n);
    for (Op& op : ops) op = {rng.below(keys), rng.below(100) < percent};
    const int grown = host.update([](auto& tx, Root& root) {
      int sum = 0;
      for (const Op& op : ops) {
        if (op.update)
          sum += Table::toggle(tx, root, op.key, op.key + 1);
        else
          found_ += Table::contains(tx, root, op.key) ? 1U : 0U;
      }
      return sum;
    });
    return {.wrote = percent != 0, .grown = grown};
  }

  // Keeps the look-ups from being optimised away.
  static inline thread_local constinit std::uint64_t found_ = 0;
};

}  // namespace bench
