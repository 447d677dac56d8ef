// SPDX-License-Identifier: BSD-3-Clause
//
// table's audit(): whether its parts and its rows agree (TABLE-1 to TABLE-3). It takes memory for a
// copy of all rows.
// Thread safety: that of the transaction.
#pragma once

#include <map>
#include <set>
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
      problems.push_back("table, by " + std::string(detail::part_at(Part::member).name) + ": " +
                         problem);
  });
  if (!problems.empty()) return problems;

  std::map<const Row*, T> rows;
  std::set<std::uint64_t> numbers;
  const std::uint64_t next = tx.read(next_);
  for (auto at = parts_.first.rows.begin(tx); at; at.next(tx)) {
    const Row* const row = at.value(tx);
    std::uint64_t number = 0;
    tx.read_bytes(&number, &row->number, sizeof number);
    if (!rows.emplace(row, detail::row_ref<T, Tx>(tx, row).value()).second)
      problems.emplace_back("table: two keys lead to one row");
    if (number >= next || !numbers.insert(number).second)
      problems.push_back("table: a row has number " + std::to_string(number) +
                         ", which is another row's or was never given");
    if (problems.size() >= 8) return problems;
  }
  parts_.each([&]<class Part>(const Part& part) {
    const std::string name = "table, by " + std::string(detail::part_at(Part::member).name);
    std::uint64_t wanted = 0;
    for (const auto& [row, value] : rows) wanted += part.holds(value) ? 1 : 0;
    if (part.rows.size(tx) != wanted) {
      problems.push_back(name + ": found " + std::to_string(part.rows.size(tx)) +
                         " entries, expected one for each of " + std::to_string(wanted) + " rows");
    }
    for (auto at = part.rows.begin(tx); at && problems.size() < 8; at.next(tx)) {
      const Row* const row = at.value(tx);
      const auto found = rows.find(row);
      if (found == rows.end()) {
        problems.push_back(name + ": an entry leads to no row");
        continue;
      }
      std::uint64_t number = 0;
      tx.read_bytes(&number, &row->number, sizeof number);
      if (!detail::same_key(at.key(tx), part.key_of(found->second, number)))
        problems.push_back(name + ": the entry of row " + std::to_string(number) +
                           " has another key than the row");
    }
  });
  return problems;
}

}  // namespace perdure
