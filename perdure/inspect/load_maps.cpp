// SPDX-License-Identifier: BSD-3-Clause
//
// TreeEntries: builds the B+-tree of a map (btree.hpp) from entries in order. A node is written
// when it is certain that enough entries follow for another node.
#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {

TreeEntries::TreeEntries(Loader& loader, const Layout& map)
    : LoadEntries(loader),
      map_(map),
      full_(map.count - map.count / 8),  // so that a first insertion splits no node
      key_(stride(map.element()), '\0'),
      value_(stride(map.mapped()), '\0'),
      levels_(1) {}

std::uint64_t TreeEntries::payload_bytes(std::size_t level) const {
  return level == 0 ? stride(map_.mapped()) : sizeof(Address);
}

void TreeEntries::add() {
  ++count_;
  add_to(0, key_.data(), value_.data());
  key_.assign(key_.size(), '\0');
  value_.assign(value_.size(), '\0');
}

void TreeEntries::add_to(std::size_t level, const char* key, const char* payload) {
  if (level == levels_.size()) levels_.emplace_back();
  levels_[level].keys.append(key, key_.size());
  levels_[level].payloads.append(payload, payload_bytes(level));
  // An inner node has one child more than keys.
  const std::uint64_t full = full_ + (level == 0 ? 0 : 1);
  if (++levels_[level].entries == full + full / 2) node(level, full);
}

void TreeEntries::node(std::size_t level, std::uint64_t entries) {
  const bool leaf = level == 0;
  const std::uint64_t payload = payload_bytes(level), stride = key_.size();
  const std::uint64_t slots = leaf ? entries : entries - 1, skipped = entries - slots;
  std::vector<std::byte> bytes(leaf ? map_.node_bytes : map_.inner_bytes);
  std::uint64_t link_at = 8;
  if (map_.count <= 15) {
    put(bytes.data(), 0xedcba98765432100ULL | slots);
  } else {
    link_at = (map_.count + 1 + 7) / 8 * 8;
    bytes[0] = static_cast<std::byte>(slots);
    for (std::uint64_t i = 0; i < map_.count; ++i) bytes[1 + i] = static_cast<std::byte>(i);
  }
  Level& from = levels_[level];
  if (!leaf) std::memcpy(bytes.data() + link_at, from.payloads.data(), sizeof(Address));
  std::memcpy(bytes.data() + map_.key_at, from.keys.data() + skipped * stride, slots * stride);
  std::memcpy(bytes.data() + (leaf ? map_.value_at : map_.children_at),
              from.payloads.data() + skipped * payload, slots * payload);
  const Address at = store().add(bytes.data(), bytes.size());
  if (leaf && from.last != 0) store().write(from.last + link_at, &at, sizeof at);
  from.last = at;

  // The parent gets the node's first key: a copy of a leaf's, or the key for which an inner node
  // has no slot. The first node of a level needs no key.
  std::string separator = from.keys.substr(0, stride);
  if (leaf && from.nodes != 0)
    loader_.own_blocks(map_.element(), reinterpret_cast<std::byte*>(separator.data()));
  if (from.nodes++ == 0) separator.assign(stride, '\0');
  from.keys.erase(0, entries * stride);
  from.payloads.erase(0, entries * payload);
  from.entries -= entries;
  add_to(level + 1, separator.data(), reinterpret_cast<const char*>(&at));
}

void TreeEntries::finish(std::byte* image) {
  if (count_ == 0) return;
  std::uint64_t height = 0;
  for (std::size_t level = 0;; ++level) {
    if (level > 0 && levels_[level].entries == 1 && levels_[level].nodes == 0) {
      std::memcpy(image, levels_[level].payloads.data(), sizeof(Address));
      break;
    }
    ++height;
    // The entries that are left fill at least half a node.
    const std::uint64_t most = map_.count + (level == 0 ? 0 : 1);
    if (levels_[level].entries > most) node(level, levels_[level].entries / 2);
    if (levels_[level].entries != 0) node(level, levels_[level].entries);
  }
  put(image + 8, height);
  put(image + 16, count_);
}

}  // namespace perdure::inspect
