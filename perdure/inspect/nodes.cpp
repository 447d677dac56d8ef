// SPDX-License-Identifier: BSD-3-Clause
//
// place_nodes: the nodes of the containers (perdure/container/) as numbers. The containers' own
// sources say why their nodes are as they are.
#include <bit>

#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {
namespace {

/// btree_node.hpp, slot_order.hpp: order, link, keys; then values, or children.
bool place_map(Layout& map) {
  Geometry node;
  node.add(map.count <= 15 ? 8 : (map.count + 1 + 7) / 8 * 8, 8);
  node.add(8, 8);
  map.key_at = node.add(map.element(), map.count);
  const std::uint64_t head = node.bytes(), align = node.align();
  Geometry leaf, inner;
  leaf.add(head, align);
  map.value_at = leaf.add(map.mapped(), map.count);
  map.node_bytes = leaf.bytes();
  inner.add(head, align);
  map.children_at = inner.add(8 * map.count, 8);
  map.inner_bytes = inner.bytes();
  return node.certain() && leaf.certain();
}

/// hash_node.hpp: next, hash, key, value.
bool place_hash_map(Layout& map) {
  const Layout& key = map.element();
  map.keeps_hash =
      key.kind == Kind::text || key.kind == Kind::sequence || key.kind == Kind::optional ||
      key.kind == Kind::variant || (key.named && !(key.own_order && is_bytes_alone(key))) ||
      (key.kind == Kind::array && key.text.starts_with("arr<") && !is_bytes_alone(key));
  Geometry node;
  node.add(8, 8);
  if (map.keeps_hash) node.add(8, 8);
  map.key_at = node.add(key);
  map.value_at = node.add(map.mapped());
  map.node_bytes = node.bytes();
  return node.certain();
}

/// rb.hpp: key, left, right, parent, colour, value.
bool place_rb_tree(Layout& map) {
  Geometry node;
  map.key_at = node.add(map.element());
  map.children_at = node.add(4 * 8, 8);
  map.value_at = node.add(map.mapped());
  map.node_bytes = node.bytes();
  // The key's size decides where the links are.
  return node.certain() && (map.element().exact || map.element().size % 8 == 0);
}

/// list.hpp: previous, next, element.
bool place_list(Layout& list) {
  Geometry node;
  node.add(2 * 8, 8);
  list.value_at = node.add(list.element());
  list.node_bytes = node.bytes();
  return node.certain();
}

/// queue.hpp: next, elements.
bool place_queue(Layout& queue) {
  const std::uint64_t bytes = std::max<std::uint64_t>(queue.element().size, 1);
  queue.slots = bytes >= 128 ? 8 : 1008 / bytes;
  Geometry block;
  block.add(8, 8);
  queue.value_at = block.add(queue.element(), queue.slots);
  queue.node_bytes = block.bytes();
  return block.certain();
}

/// deque.hpp: elements, a power of two of them.
bool place_deque(Layout& deque) {
  const std::uint64_t bytes = std::max<std::uint64_t>(deque.element().size, 1);
  deque.slots = bytes >= 128 ? 8 : std::bit_floor(1024 / bytes);
  Geometry block;
  deque.value_at = block.add(deque.element(), deque.slots);
  deque.node_bytes = block.bytes();
  return block.certain();
}

}  // namespace

bool place_nodes(Layout& container) {
  switch (container.kind) {
    case Kind::map:
    case Kind::set: return place_map(container);
    case Kind::deque: return place_deque(container);
    case Kind::hash_map:
    case Kind::hash_set: return place_hash_map(container);
    case Kind::rb_tree: return place_rb_tree(container);
    case Kind::list: return place_list(container);
    case Kind::queue: return place_queue(container);
    case Kind::priority_queue:
    case Kind::vector: {
      Geometry one;
      one.add(container.element());
      container.node_bytes = one.bytes();
      return one.certain();
    }
    default: return true;
  }
}

}  // namespace perdure::inspect
