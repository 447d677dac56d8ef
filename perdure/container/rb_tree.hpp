// SPDX-License-Identifier: BSD-3-Clause
//
// rb_tree<K, V>: an ordered map in a pool: a red-black tree with one node per element (rb.hpp).
//
// Compared with map (the B+-tree) it costs more memory and more cache misses; an element's address
// never matters, few words change, and two threads seldom conflict. The map occupies a cache line
// of its own, so that writes to fields beside it in a root do not slow its readers.
// Thread safety: that of the transaction. Zero bytes are an empty map.
#pragma once

#include <string>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/container/ordered.hpp"
#include "perdure/container/rb.hpp"

namespace perdure {

/// The calls are those of detail::ordered.
template <class K, class V>
class alignas(64) rb_tree : public detail::ordered<K, V, detail::rb<K, V>> {
 public:
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    return this->tree_.audit(tx);
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "rb_tree<" + stored_key<K>::name(names) + "," + stored<V>::name(names) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }
};
static_assert(sizeof(rb_tree<std::uint64_t, std::uint64_t>) == 64);

}  // namespace perdure
