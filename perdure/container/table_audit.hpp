// SPDX-License-Identifier: BSD-3-Clause
//
// table's audit(): whether its parts and its rows agree (TABLE-1 to TABLE-3). It holds one row at a
// time, and one bit for each of the first 2^26 numbers of rows: of later ones it finds two rows of
// one number only where they share an index's value.
// Thread safety: that of the transaction.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/container/table.hpp"

namespace perdure {

template <class T, class Key, class... Others>
template <class Tx>
std::vector<std::string> table<T, Key, Others...>::audit(Tx& tx) const {
  std::vector<std::string> problems;
  parts_.each([&]<class Part>(const Part& part) {
    for (const std::string& problem : part.rows.audit(tx))
      problems.push_back("table, by " + Part::names() + ": " + problem);
  });
  if (!problems.empty()) return problems;

  // Each row is read once and looked up in every part. An entry for each, as many entries as rows:
  // then no entry leads elsewhere.
  const std::uint64_t next = tx.read(next_);
  std::vector<bool> given(std::min(next, audited_numbers));
  std::array<std::uint64_t, 1 + sizeof...(Others)> wanted{};
  for (auto at = parts_.first.rows.begin(tx); at && problems.size() < 8; at.next(tx)) {
    Row* const row = at.value(tx);
    const T value = *copy(tx, std::optional(row));
    std::uint64_t number = 0;
    tx.read_bytes(&number, &row->number, sizeof number);
    if (number >= next || (number < given.size() && given[number]))
      problems.push_back("table: a row has number " + std::to_string(number) +
                         ", which is another row's or was never given");
    else if (number < given.size())
      given[number] = true;
    if (!detail::same_key(at.key(tx), KeyPart::key_of(value, number)))
      problems.push_back("table, by " + KeyPart::names() + ": the entry of row " +
                         std::to_string(number) + " has another key than the row");
    std::size_t index = 0;
    parts_.each([&]<class Part>(const Part& part) {
      std::uint64_t& expected = wanted[index++];
      if (!part.holds(value)) return;
      ++expected;
      const auto found = part.rows.find(tx, part.key_of(value, number));
      if (found != row && problems.size() < 8)
        problems.push_back("table, by " + Part::names() + ": found " +
                           (found ? "another row" : "nothing") + " by the member of row " +
                           std::to_string(number) + ", expected that row");
    });
  }
  if (!problems.empty()) return problems;
  std::size_t index = 0;
  parts_.each([&]<class Part>(const Part& part) {
    if (const std::uint64_t n = part.rows.size(tx), expected = wanted[index++]; n != expected)
      problems.push_back("table, by " + Part::names() + ": found " + std::to_string(n) +
                         " entries, expected one for each of " + std::to_string(expected) +
                         " rows");
  });
  return problems;
}

}  // namespace perdure
