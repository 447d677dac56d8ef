// SPDX-License-Identifier: BSD-3-Clause
//
// What opening a pool of another version of the program does with a table's indexes. Part of
// table.hpp, which includes it at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "perdure/container/table.hpp"

namespace perdure {

template <class T, class Key, class... Others>
template <class Run>
void table<T, Key, Others...>::catch_up(Run&& run, std::uint64_t batch) {
  std::vector<Row*> rows;  // they keep their addresses, and nobody else has the pool yet
  run([&](auto& tx) {
    rows.clear();
    rows.reserve(parts_.first.rows.size(tx));
    for (auto at = parts_.first.rows.begin(tx); at; at.next(tx)) rows.push_back(at.value(tx));
  });
  parts_.each([&]<class Part>(Part& part) {
    if constexpr (detail::is_dropped<Part>) {
      for (bool empty = false; !empty;)
        run([&](auto& tx) { empty = part.rows.clear_some(tx, batch); });
    } else if constexpr (!std::is_same_v<Part, KeyPart>) {
      for (std::size_t from = 0; from < rows.size(); from += batch) {
        const std::size_t to = std::min<std::size_t>(rows.size(), from + batch);
        run([&]<class Tx>(Tx& tx) {
          for (std::size_t i = from; i < to; ++i) {
            const T value = detail::row_ref<T, Tx>(tx, rows[i]).value();
            std::uint64_t number = 0;
            tx.read_bytes(&number, &rows[i]->number, sizeof number);
            // One that is there already is from an opening that was cut short, or was always there.
            if (part.holds(value)) (void)part.rows.insert(tx, part.key_of(value, number), rows[i]);
          }
        });
      }
    }
  });
}

template <class T, class Key, class... Others>
template <class Tx>
std::uint64_t table<T, Key, Others...>::shared_values(Tx& tx, const std::byte* old,
                                                      std::string_view path) const {
  const std::string_view name = path.substr(path.rfind('.') + 1);
  const auto& rows = reinterpret_cast<const table*>(old)->parts_.first.rows;
  std::uint64_t shared = 0;
  parts_.each([&]<class Part>(const Part& part) {
    if constexpr (Part::is_unique && !std::is_same_v<Part, KeyPart>) {
      if (Part::names() != name) return;
      using Entry = typename Part::entry;
      const value::Type& type = value::type_of<Entry>();
      const auto hash = [&](const Entry& m) { return value::hash_of(type, std::addressof(m)); };
      const auto same = [&](const Entry& a, const Entry& b) {
        return value::same(type, std::addressof(a), std::addressof(b));
      };
      std::unordered_set<Entry, decltype(hash), decltype(same)> seen(16, hash, same);
      for (auto at = rows.begin(tx); at; at.next(tx)) {
        const T value = detail::row_ref<T, Tx>(tx, at.value(tx)).value();
        if (part.holds(value) && !seen.insert(Part::key_of(value, 0)).second) ++shared;
      }
    }
  });
  return shared;
}

}  // namespace perdure
