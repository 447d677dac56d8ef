// SPDX-License-Identifier: BSD-3-Clause
//
// map<K, V>: an ordered map in a pool: a B+-tree (btree.hpp) with range scans over linked leaves.
//
// `Capacity` is the number of entries per node: 15 (256 bytes with 8-byte keys and values) holds a
// node's order in one word, and a change logs about four words; up to 255 (4 KiB) suits long scans
// and rare changes. Text is ordered byte by byte. The map occupies a cache line of its own, so that
// writes to fields beside it in a root do not slow its readers.
// Thread safety: that of the transaction. Zero bytes are an empty map.
#pragma once

#include <string>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/container/btree.hpp"
#include "perdure/container/btree_audit.hpp"
#include "perdure/container/ordered.hpp"

namespace perdure {

/// The calls are those of detail::ordered.
template <class K, class V, unsigned Capacity = 15>
class alignas(64) map : public detail::ordered<K, V, detail::btree<K, V, Capacity>> {
 public:
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    return detail::audit_btree<K>(tx, this->tree_);
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "map<" + stored_key<K>::name(names) + "," + stored<V>::name(names) + "," +
           std::to_string(Capacity) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }
};
static_assert(sizeof(map<std::uint64_t, std::uint64_t>) == 64);

}  // namespace perdure
