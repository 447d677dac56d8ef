// SPDX-License-Identifier: BSD-3-Clause
//
// The contents of the pools on the machine that loses power: they follow from one counter, so that
// they can be compared in full.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <perdure.hpp>
#include <string>

#include "perdure/base/checksum.hpp"

namespace perdure::qemu {

constexpr std::uint64_t accounts = 64;  // their sum is always zero
// Update n adds text n and removes text n - window: texts are added and removed, blocks are reused.
constexpr std::uint64_t window = 3000;

struct Root {
  hash_map<std::uint64_t, std::string> texts;
  std::array<p<std::int64_t>, accounts> balance;
  p<std::uint64_t> counter;
};
using TestPool = Pool<Root, engines<any_engine>>;

inline std::string text_of(std::uint64_t n) {
  const std::uint64_t r = base::mix(n);
  return std::string(r % 64 == 0 ? r / 64 % 6000 : r / 64 % 900, static_cast<char>('a' + n % 26)) +
         std::to_string(n);
}

struct Transfer {
  std::size_t from, to;
  std::int64_t amount;
};
inline Transfer transfer_of(std::uint64_t n) {
  const std::uint64_t r = base::mix(~n);
  return {static_cast<std::size_t>(r % accounts), static_cast<std::size_t>(r / accounts % accounts),
          static_cast<std::int64_t>(r >> 48)};
}

/// One update by any thread; returns its number.
template <class Tx>
std::uint64_t step(Tx& tx, Root& root) {
  const std::uint64_t n = tx(root.counter) + 1;
  tx(root.counter) = n;
  const Transfer t = transfer_of(n);
  tx(root.balance[t.from]) -= t.amount;
  tx(root.balance[t.to]) += t.amount;
  root.texts.put(tx, n, text_of(n));
  if (n > window) root.texts.erase(tx, n - window);
  return n;
}

/// The difference from the contents after update n; empty when there is none.
template <class Tx>
std::string difference(Tx& tx, const Root& root, std::uint64_t n) {
  const std::string after = " after update " + std::to_string(n);
  std::array<std::int64_t, accounts> expected{};
  for (std::uint64_t i = 1; i <= n; ++i) {
    const Transfer t = transfer_of(i);
    expected[t.from] -= t.amount;
    expected[t.to] += t.amount;
  }
  for (std::size_t a = 0; a < accounts; ++a) {
    const std::int64_t found = tx(root.balance[a]);
    if (found != expected[a])
      return "account " + std::to_string(a) + " holds " + std::to_string(found) + ", expected " +
             std::to_string(expected[a]) + after;
  }
  const std::uint64_t size = root.texts.size(tx), texts = std::min(n, window);
  if (size != texts)
    return "found " + std::to_string(size) + " texts, expected " + std::to_string(texts) + after;
  for (std::uint64_t i = n - texts + 1; i <= n; ++i)
    if (root.texts.find(tx, i) != text_of(i))
      return "text " + std::to_string(i) + " is missing or differs," + after;
  return {};
}

}  // namespace perdure::qemu
