// SPDX-License-Identifier: BSD-3-Clause
//
// HashEntries: makes the segments of a hash_map (hash_map.hpp) from nodes in the order of a walk.
//
// A dump does not say which segments the map had, but the order of the nodes tells enough. A walk
// visits one segment after the other, and in each its buckets in turn. A node is in the last
// existing segment on the path of its hash. So once a node belongs to a segment, no earlier node
// may have that segment on its path: it would have to be in it. If the order fits to such segments,
// a walk over the loaded map visits the nodes in the same order. For any other order, the map gets
// all of its segments.
#include <bit>
#include <unordered_map>

#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {
namespace {

/// The largest number of bits of a segment's number that is tried: 16 million segments. Fewer are
/// enough for a map that has not lost most of its entries, so a small map takes little memory.
constexpr unsigned all_bits = 24, more_than_entries = 8;
constexpr std::uint64_t segments_at_once = 8192;

}  // namespace

HashEntries::HashEntries(Loader& loader, const Layout& map)
    : LoadEntries(loader), map_(map), node_(map.node_bytes, '\0') {}

void HashEntries::add() {
  const std::uint64_t hash = loader_.hash(map_, key());
  if (map_.keeps_hash) put(bytes() + 8, hash);
  nodes_.push_back({hash, store().add(node_.data(), node_.size())});
  node_.assign(node_.size(), '\0');
}

std::uint64_t HashEntries::bucket(std::uint64_t hash) const {
  return map_.count == 1 ? 0 : hash >> (64 - std::countr_zero(map_.count));
}

bool HashEntries::as_walked(unsigned most_bits, std::vector<std::uint64_t>& segment_of) const {
  segment_of.clear();
  std::vector<bool> met(std::size_t{1} << most_bits);
  std::uint64_t here = 0, last = 0;  // the segment and bucket of the node before
  for (const Node& node : nodes_) {
    const std::uint64_t bits = std::bit_width(here);
    const bool of_it = (node.hash & ((std::uint64_t{1} << bits) - 1)) == here;
    if (!of_it || bucket(node.hash) < last) {
      std::uint64_t next = 0;
      for (unsigned k = 1; k <= most_bits && next == 0; ++k) {
        const std::uint64_t one = node.hash & ((std::uint64_t{1} << k) - 1);
        if (one >> (k - 1) != 0 && one > here && !met[one]) next = one;
      }
      if (next == 0) return false;
      here = next;
    }
    last = bucket(node.hash);
    for (unsigned k = 1; k <= most_bits; ++k) met[node.hash & ((std::uint64_t{1} << k) - 1)] = true;
    segment_of.push_back(here);
  }
  return true;
}

void HashEntries::segment(std::vector<std::uint64_t>& directory, std::uint64_t index,
                          std::size_t from, std::size_t to) {
  std::vector<std::uint64_t> heads(map_.count);
  std::unordered_map<std::uint64_t, Address> by_hash;
  for (std::size_t i = to; i-- > from;) {  // the last one of a chain first
    const auto other = by_hash.emplace(nodes_[i].hash, nodes_[i].at);
    if (!other.second && same_key(other.first->second, nodes_[i].at))
      loader_.wrong("a key twice, in segment " + std::to_string(index),
                    "each key once");  // HASHMAP-3
    Address& head = heads[bucket(nodes_[i].hash)];
    if (head != 0) store().write(nodes_[i].at, &head, sizeof head);
    head = nodes_[i].at;
  }
  directory[index] = store().add(heads.data(), 8 * heads.size());
}

bool HashEntries::same_key(Address a, Address b) const {
  const Layout& key = map_.element();
  std::vector<std::byte> one(stride(key)), other(stride(key));
  store().read(one.data(), a + map_.key_at, one.size());
  store().read(other.data(), b + map_.key_at, other.size());
  if (!sorts(key)) return one == other;
  bool same = false;
  store().view([&](value::Reader& reader) {
    same = sort_key(key, one.data(), reader) == sort_key(key, other.data(), reader);
  });
  return same;
}

void HashEntries::finish(std::byte* image) {
  if (nodes_.empty()) return;
  std::uint64_t segments = 1;  // as many as the map itself would have
  while (segments * map_.count < nodes_.size()) segments += std::min(segments, segments_at_once);
  std::vector<std::uint64_t> segment_of;
  segment_of.reserve(nodes_.size());
  const auto few =
      std::min(all_bits, static_cast<unsigned>(std::bit_width(nodes_.size())) + more_than_entries);
  const bool walked = as_walked(few, segment_of) || as_walked(all_bits, segment_of);
  if (walked) {
    segments = std::max(segments, std::bit_ceil(segment_of.back() + 1));
  } else {
    const std::uint64_t mask = std::bit_ceil(segments) - 1;
    const auto of = [&](const Node& node) {
      const std::uint64_t index = node.hash & mask;
      return index < segments ? index : index & ~std::bit_floor(index);
    };
    std::stable_sort(nodes_.begin(), nodes_.end(),
                     [&](const Node& a, const Node& b) { return of(a) < of(b); });
    segment_of.clear();
    for (const Node& node : nodes_) segment_of.push_back(of(node));
  }
  std::vector<std::uint64_t> directory(std::max<std::uint64_t>(std::bit_ceil(segments), 8));
  if (segment_of.front() != 0) segment(directory, 0, 0, 0);  // HASHMAP-1
  for (std::size_t from = 0, to = 0; from < nodes_.size(); from = to) {
    while (to < nodes_.size() && segment_of[to] == segment_of[from]) ++to;
    segment(directory, segment_of[from], from, to);
  }
  put(image, segments);
  put(image + 8, static_cast<std::uint64_t>(std::countr_zero(directory.size())));
  put(image + 16, store().add(directory.data(), 8 * directory.size()));
  put(image + 32, nodes_.size());
}

}  // namespace perdure::inspect
