// SPDX-License-Identifier: BSD-3-Clause
//
// The walks over map, rb_tree and hash_map.
#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <vector>

#include "perdure/inspect/walk.hpp"

namespace perdure::inspect {
namespace {

/// Checks that keys come in order.
class Ascending {
 public:
  Ascending(Walker& walker, const Layout& key, const char* what, Visitor& visitor)
      : walker_(walker), key_(key), what_(what), visitor_(visitor), known_(has_known_order(key)) {}

  void separator(Address key) { next(key, true, false); }
  void entry(Address key) { next(key, false, separator_); }

 private:
  void next(Address key, bool separator, bool may_equal) {
    if (!known_) return;
    if (before_ != 0 && !reported_) {
      const int order = walker_.compare(key_, before_, key);
      if (order > 0 || (order == 0 && !may_equal)) {
        reported_ = true;
        visitor_.problem(std::string(what_).append(": a key is out of order"));
      }
    }
    before_ = key;
    separator_ = separator;
  }

  Walker& walker_;
  const Layout& key_;
  const char* what_;
  Visitor& visitor_;
  const bool known_;
  bool reported_ = false, separator_ = false;
  Address before_ = 0;
};

/// The bucket of a hash in its segment.
std::uint64_t bucket_of(const Layout& map, std::uint64_t hash) {
  return map.count == 1 ? 0 : hash >> (64 - std::countr_zero(map.count));
}

}  // namespace

/// One walk over a map (btree.hpp), in the order of its keys.
class MapWalk {
 public:
  MapWalk(Walker& walker, const Layout& map, Visitor& visitor)
      : walker_(walker),
        map_(map),
        visitor_(visitor),
        ascending_(walker, map.element(), "map", visitor) {}

  void run(Address at) {
    const auto root = walker_.read<Address>(at);
    const auto height = walker_.read<std::uint64_t>(at + 8);
    const std::uint64_t expected = walker_.counter(at + 16, visitor_);
    if ((root == 0) != (height == 0) || height > 48)
      Walker::damaged("map: its height is " + std::to_string(height) +
                          (root != 0 ? ", with a root" : ", without a root"),
                      "one that goes with its root");
    if (root != 0 && !node(root, height)) return;
    check_end(expected);
  }

  /// The entry of a key, by descent.
  std::optional<Entry> find(Address at, const std::function<int(Address)>& order_of) {
    auto here = walker_.read<Address>(at);
    auto height = walker_.read<std::uint64_t>(at + 8);
    if (height > 48) Walker::damaged("map: a height of " + std::to_string(height), "up to 48");
    for (; here != 0 && height > 1; --height) {
      walker_.block(visitor_, here, map_.inner_bytes);
      Address child = here + link();
      for (const std::uint8_t slot : order(here)) {
        if (order_of(key(here, slot)) > 0) break;
        child = here + map_.children_at + 8 * slot;
      }
      here = walker_.read<Address>(child);
    }
    if (here == 0) return std::nullopt;
    for (const std::uint8_t slot : order(here)) {
      if (order_of(key(here, slot)) == 0) return Entry{key(here, slot), value(here, slot)};
    }
    return std::nullopt;
  }

 private:
  void check_end(std::uint64_t expected) {
    if (found_ != expected)
      visitor_.problem("map: found " + std::to_string(found_) + " entries, its count is " +
                       std::to_string(expected));
    if (last_leaf_ != 0 && walker_.read<Address>(last_leaf_ + link()) != 0)
      visitor_.problem("map: its last leaf links to another one");
  }

  [[nodiscard]] std::uint64_t order_bytes() const {
    return map_.count <= 15 ? 8 : (map_.count + 1 + 7) / 8 * 8;
  }
  [[nodiscard]] std::uint64_t link() const { return order_bytes(); }

  /// The slots of a node's entries, in order.
  std::vector<std::uint8_t> order(Address at) {
    std::array<std::uint8_t, 4104> bytes{};
    walker_.read_bytes(bytes.data(), at, order_bytes());
    std::vector<std::uint8_t> slots;
    if (map_.count <= 15) {
      const auto word = walker_.read<std::uint64_t>(at);
      for (unsigned i = 0; i < (word & 15); ++i)
        slots.push_back(static_cast<std::uint8_t>(word >> (4 * i + 4) & 15));
    } else {
      slots.assign(bytes.begin() + 1, bytes.begin() + 1 + bytes[0]);
    }
    std::array<bool, 256> used{};
    for (const std::uint8_t slot : slots) {
      if (slot >= map_.count || used[slot])
        Walker::damaged("map: a node whose order is not a permutation of its slots",
                        "each slot at most once");
      used[slot] = true;
    }
    if (slots.empty()) Walker::damaged("map: a node without entries", "at least one");
    return slots;
  }

  [[nodiscard]] Address key(Address node, std::uint8_t slot) const {
    return node + map_.key_at + slot * std::max<std::uint64_t>(map_.element().size, 1);
  }

  [[nodiscard]] Address value(Address leaf, std::uint8_t slot) const {
    return leaf + map_.value_at + slot * std::max<std::uint64_t>(map_.mapped().size, 1);
  }

  /// Returns false where the visitor ended the walk.
  bool node(Address at, std::uint64_t level) {
    if (at == 0) Walker::damaged("map: an inner node without one of its children", "a child");
    const bool leaf = level == 1;
    walker_.block(visitor_, at, leaf ? map_.node_bytes : map_.inner_bytes);
    const std::vector<std::uint8_t> slots = order(at);
    if (!leaf && !node(walker_.read<Address>(at + link()), level - 1)) return false;
    if (leaf) {
      if (last_leaf_ != 0 && walker_.read<Address>(last_leaf_ + link()) != at)
        visitor_.problem("map: a leaf does not link to the next leaf");
      last_leaf_ = at;
    }
    for (const std::uint8_t slot : slots) {
      if (leaf) {
        ++found_;
        ascending_.entry(key(at, slot));
        if (!visitor_.entry({key(at, slot), value(at, slot)})) return false;
      } else {
        ascending_.separator(key(at, slot));
        visitor_.separator(key(at, slot));
        if (!node(walker_.read<Address>(at + map_.children_at + 8 * slot), level - 1)) return false;
      }
    }
    return true;
  }

  Walker& walker_;
  const Layout& map_;
  Visitor& visitor_;
  Ascending ascending_;
  Address last_leaf_ = 0;
  std::uint64_t found_ = 0;
};

void Walker::map(const Layout& map, Address at, Visitor& visitor) {
  MapWalk(*this, map, visitor).run(at);
}

/// In order, by the parents' links: without a stack, which a damaged tree could exhaust.
void Walker::rb_tree(const Layout& tree, Address at, Visitor& visitor) {
  const auto root = read<Address>(at);
  const std::uint64_t expected = counter(at + 8, visitor);
  Ascending ascending(*this, tree.element(), "rb_tree", visitor);
  const auto side = [&](Address node, unsigned which) {
    return read<Address>(node + tree.children_at + 8 * which);
  };
  std::vector<Address> above;  // nodes whose right side remains
  std::uint64_t found = 0;
  Address node = root;
  if (root != 0 && side(root, 2) != 0) visitor.problem("rb_tree: the root has a parent");
  if (root != 0 && (read<std::uint64_t>(root + tree.children_at + 24) & 1) != 0)
    visitor.problem("rb_tree: the root is red");
  while (node != 0 || !above.empty()) {
    for (; node != 0; node = side(node, 0)) {
      block(visitor, node, tree.node_bytes);
      above.push_back(node);
      for (unsigned which = 0; which < 2; ++which) {
        const Address child = side(node, which);
        if (child == 0) continue;
        if (side(child, 2) != node)
          visitor.problem("rb_tree: a node does not point back at its parent");
        if (side(node, 3) != 0 && side(child, 3) != 0)
          visitor.problem("rb_tree: a red node has a red child");
      }
    }
    node = above.back();
    above.pop_back();
    ++found;
    ascending.entry(node + tree.key_at);
    if (!visitor.entry({node + tree.key_at, node + tree.value_at})) return;
    node = side(node, 1);
  }
  if (found != expected)
    visitor.problem("rb_tree: found " + std::to_string(found) + " nodes, its count is " +
                    std::to_string(expected));
}

std::pair<std::uint64_t, Address> Walker::segment_of(Address map, std::uint64_t segments,
                                                     std::uint64_t hash) {
  std::uint64_t index = hash & (std::bit_ceil(segments) - 1);
  if (index >= segments) index &= ~std::bit_floor(index);
  while (true) {
    if (const auto segment = read<Address>(segment_at(map + 8, index, 8)); segment != 0)
      return {index, segment};
    if (index == 0) damaged("hash_map: segment 0 is missing", "a segment");
    index &= ~std::bit_floor(index);
  }
}

void Walker::hash_map(const Layout& map, Address at, Visitor& visitor) {
  const auto segments = read<std::uint64_t>(at);
  const Address directory = at + 8;
  segment_blocks(directory, 8, visitor);
  const std::uint64_t expected = counter(at + 32, visitor);
  if (segments > data_bytes_ / 8)
    damaged("hash_map: " + std::to_string(segments) + " segments", "as many as a pool can hold");
  std::uint64_t found = 0;
  bool misplaced = false;
  if (segments != 0) (void)segment_of(at, segments, 0);
  for (std::uint64_t s = 0; s < segments; ++s) {
    const auto segment = read<Address>(segment_at(directory, s, 8));
    if (segment == 0) continue;
    block(visitor, segment, 8 * map.count);
    for (std::uint64_t b = 0; b < map.count; ++b) {
      Address next = 0;
      for (auto node = read<Address>(segment + 8 * b); node != 0; node = next) {
        block(visitor, node, map.node_bytes);
        ++found;
        if (const auto hash = this->hash(map.element(), node + map.key_at); hash && !misplaced) {
          misplaced = segment_of(at, segments, *hash).first != s || bucket_of(map, *hash) != b ||
                      (map.keeps_hash && read<std::uint64_t>(node + 8) != *hash);
          if (misplaced)
            visitor.problem("hash_map: segment " + std::to_string(s) + ", bucket " +
                            std::to_string(b) + ": a key that belongs elsewhere");
        }
        next = read<Address>(node);  // the visitor only reads
        if (!visitor.entry({node + map.key_at, node + map.value_at})) return;
      }
    }
  }
  if (found != expected)
    visitor.problem("hash_map: found " + std::to_string(found) + " nodes, its count is " +
                    std::to_string(expected));
}

std::optional<Entry> Walker::in_tree(const Layout& map, Address at,
                                     const std::function<int(Address)>& order_of) {
  Visitor nobody;
  return MapWalk(*this, map, nobody).find(at, order_of);
}

std::optional<Entry> Walker::in_bucket(const Layout& map, Address at, std::uint64_t hash,
                                       const std::function<bool(const Entry&)>& is_it) {
  const auto segments = read<std::uint64_t>(at);
  if (segments == 0) return std::nullopt;
  if (segments > data_bytes_ / 8)
    damaged("hash_map: " + std::to_string(segments) + " segments", "as many as a pool can hold");
  const Address segment = segment_of(at, segments, hash).second;
  Visitor nobody;
  for (auto node = read<Address>(segment + 8 * bucket_of(map, hash)); node != 0;
       node = read<Address>(node)) {
    block(nobody, node, map.node_bytes);
    const Entry entry{node + map.key_at, node + map.value_at};
    if (is_it(entry)) return entry;
  }
  return std::nullopt;
}

}  // namespace perdure::inspect
