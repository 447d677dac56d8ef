// SPDX-License-Identifier: BSD-3-Clause
//
// make_room: reserve() for a vector that grows bit by bit. reserve() itself takes just what it is
// asked for, so a vector that asks before each element copies all of them each time.
#pragma once

#include <algorithm>
#include <cstddef>

namespace perdure::base {

/// Makes room for `more` elements: adding them allocates nothing. Doubles the capacity at least
/// where it allocates, so that n calls copy O(n) elements. Throws std::bad_alloc, and changes
/// nothing then.
template <class Vector>
void make_room(Vector& v, std::size_t more) {
  if (v.capacity() - v.size() < more) v.reserve(std::max(v.size() + more, v.capacity() * 2));
}

}  // namespace perdure::base
