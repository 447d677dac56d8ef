// SPDX-License-Identifier: BSD-3-Clause
//
// compact: removes elements of an array by a predicate; the others move up in their order. It is
// the erase_if() of vector, deque and priority_queue.
//
// The predicate sees all elements before the first one moves, so the container is whole when the
// predicate throws and the program goes on with the transaction. It takes one bit of DRAM per
// element.
// Thread safety: that of the transaction.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/container/live_cursor.hpp"

namespace perdure::detail {

/// `at(i)` is field i of `n`, `container` the address under which a change is refused while the
/// predicate runs. Returns how many elements remain: the first ones.
template <class Stored, class Tx, class At, class F>
std::uint64_t compact(Tx& tx, std::uint64_t n, const void* container, At at, F& pred) {
  if (live_cursor::any()) being_changed::refuse(container);
  std::vector<bool> gone(n);
  bool any = false;
  {
    const being_changed changing(container);
    for (std::uint64_t i = 0; i < n; ++i) {
      gone[i] = pred(Stored::read(tx, at(i)));
      any = any || gone[i];
    }
  }
  if (!any) return n;
  std::uint64_t left = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto raw = tx.read(at(i));
    if (gone[i]) {
      Stored::drop(tx, raw);
    } else {
      if (left != i) tx.write(at(left), raw);
      ++left;
    }
  }
  return left;
}

}  // namespace perdure::detail
