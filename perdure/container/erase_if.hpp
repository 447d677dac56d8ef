// SPDX-License-Identifier: BSD-3-Clause
//
// erase_if(tx, container, pred): removes the elements for which pred is true, from any container.
//
// Thread safety: that of the transaction.
#pragma once

#include <cstdint>
#include <utility>

#include "perdure/container/stored.hpp"

namespace perdure {

/// Removes the elements for which pred is true. Returns how many. pred is called once per element:
/// with (key, value) of map, rb_tree, hash_map and multimap, with the row of a table, and with the
/// element of all others; it must not change the container. A hooked_list frees nothing. The
/// elements of a queue that remain are moved behind its end, in their order.
///
/// All of it is one transaction. Errors: those of the container's erase().
template <class Tx, class Container, class F>
std::uint64_t erase_if(Tx& tx, Container& container, F pred) {
  detail::require_update<Tx>();
  std::uint64_t removed = 0;
  if constexpr (requires { container.erase_if(tx, pred); }) {
    removed = container.erase_if(tx, pred);  // vector, deque, priority_queue, table
  } else if constexpr (requires { typename Container::mapped_type; }) {
    for (auto at = container.begin(tx); at; at.next(tx)) {
      const auto key = at.key(tx);
      if (!pred(key, at.value(tx))) continue;
      if constexpr (requires { container.erase(tx, at); })
        container.erase(tx, at);  // multimap: this one alone
      else
        container.erase(tx, key);
      ++removed;
    }
  } else if constexpr (requires { typename Container::key_type; }) {
    for (auto at = container.begin(tx); at; at.next(tx)) {
      const auto key = at.key(tx);
      if (!pred(key)) continue;
      container.erase(tx, key);
      ++removed;
    }
  } else if constexpr (requires { container.pop(tx); }) {
    for (std::uint64_t n = container.size(tx); n > 0; --n) {
      auto value = container.pop(tx);
      if (pred(std::as_const(*value)))
        ++removed;
      else
        container.push(tx, *value);
    }
  } else {
    for (auto at = container.begin(tx); at; at.next(tx)) {
      auto value = at.value(tx);
      if constexpr (requires { container.erase(tx, *value); }) {
        if (!pred(std::as_const(*value))) continue;
        container.erase(tx, *value);  // hooked_list
      } else {
        if (!pred(std::as_const(value))) continue;
        container.erase(tx, at);
      }
      ++removed;
    }
  }
  return removed;
}

}  // namespace perdure
