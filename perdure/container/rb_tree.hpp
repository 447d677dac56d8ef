// SPDX-License-Identifier: BSD-3-Clause
//
// rb_tree<K, V>: an ordered map in a pool: a red-black tree, one node an element (rb.hpp).
//
// Against map (the B+-tree) it costs more memory and more cache misses; an element's address never
// matters, few words change, and two threads seldom meet. The map is a cache line of its own, so
// that fields beside it in a root don't get in its readers' way.
// Thread safety: the transaction's. Zero bytes are an empty map.
#pragma once

#include <string>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/container/ordered.hpp"
#include "perdure/container/rb.hpp"

namespace perdure {

/// The calls are ordered's.
template <class K, class V>
class alignas(64) rb_tree : public detail::ordered<K, V, detail::rb<K, V>> {
 public:
  /// What is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    return this->tree_.audit(tx);
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "rb_tree<" + names.name<K, true>() + "," + names.name<V, true>() + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }
};
static_assert(sizeof(rb_tree<std::uint64_t, std::uint64_t>) == 64);

}  // namespace perdure
