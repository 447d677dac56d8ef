// SPDX-License-Identifier: BSD-3-Clause
//
// The walks over vector, list and queue, and over the segments of vectors and of hash_map's
// directory.
#include <algorithm>
#include <bit>

#include "perdure/inspect/walk.hpp"

namespace perdure::inspect {
namespace {

constexpr unsigned segments_in_table = 40;

}  // namespace

/// segments.hpp: shift, first segment, table of the others.
void Walker::segment_blocks(Address at, std::uint64_t bytes, Visitor& visitor) {
  const auto shift = read<std::uint64_t>(at);
  const auto first = read<Address>(at + 8), table = read<Address>(at + 16);
  if (shift > 46)
    damaged("a first segment of 2^" + std::to_string(shift) + " elements", "fewer than 2^46");
  if (first != 0) block(visitor, first, bytes << shift);
  if (table == 0) return;
  block(visitor, table, 8 * segments_in_table);
  for (unsigned k = 0; k < segments_in_table; ++k) {
    const auto segment = read<Address>(table + 8 * k);
    if (segment == 0) continue;
    if (shift + k > 46)
      damaged("a segment of 2^" + std::to_string(shift + k) + " elements", "fewer than 2^46");
    block(visitor, segment, bytes << (shift + k));
  }
}

Address Walker::segment_at(Address at, std::uint64_t index, std::uint64_t bytes) {
  const auto shift = read<std::uint64_t>(at);
  if (shift > 46) damaged("a first segment of 2^" + std::to_string(shift), "fewer than 2^46");
  const std::uint64_t high = index >> shift;
  if (high == 0) {
    const auto first = read<Address>(at + 8);
    if (first == 0) damaged("no segment for element " + std::to_string(index), "a segment");
    return first + index * bytes;
  }
  const auto k = static_cast<unsigned>(std::bit_width(high)) - 1;
  const auto table = read<Address>(at + 16);
  if (table == 0 || k >= segments_in_table || shift + k > 46)
    damaged("no segment for element " + std::to_string(index), "a segment");
  const auto segment = read<Address>(table + 8 * k);
  if (segment == 0) damaged("no segment for element " + std::to_string(index), "a segment");
  return segment + (index - (std::uint64_t{1} << (shift + k))) * bytes;
}

void Walker::vector(const Layout& vector, Address at, Visitor& visitor) {
  const auto n = read<std::uint64_t>(at);
  const std::uint64_t bytes = std::max<std::uint64_t>(vector.element().size, 1);
  segment_blocks(at + 8, bytes, visitor);
  if (n > data_bytes_ / bytes)
    damaged("vector: " + std::to_string(n) + " elements", "as many as a pool can hold");
  for (std::uint64_t i = 0; i < n; ++i) {
    if (!visitor.entry({0, segment_at(at + 8, i, bytes)})) return;
  }
}

void Walker::list(const Layout& list, Address at, Visitor& visitor) {
  const auto last = read<Address>(at + 8);
  const auto n = read<std::uint64_t>(at + 16);
  std::uint64_t found = 0;
  Address before = 0;
  for (auto node = read<Address>(at); node != 0;) {
    block(visitor, node, list.node_bytes);
    if (read<Address>(node) != before) {
      visitor.problem("list: node " + std::to_string(found) +
                      " does not point back at the one before it");
      return;
    }
    if (++found > n) {
      visitor.problem("list: more nodes than its size, " + std::to_string(n));
      return;
    }
    before = node;
    const auto next = read<Address>(node + 8);
    if (!visitor.entry({0, node + list.value_at})) return;
    node = next;
  }
  if (last != before) visitor.problem("list: its last node is not where the chain ends");
  if (found != n)
    visitor.problem("list: found " + std::to_string(found) + " nodes, its size is " +
                    std::to_string(n));
}

void Walker::queue(const Layout& queue, Address at, Visitor& visitor) {
  auto chain = read<Address>(at);
  const auto from = read<std::uint64_t>(at + 8), to = read<std::uint64_t>(at + 72);
  const auto back = read<Address>(at + 64);
  const std::uint64_t bytes = std::max<std::uint64_t>(queue.element().size, 1);
  if (from > to) {
    visitor.problem("queue: " + std::to_string(from) + " elements popped, " + std::to_string(to) +
                    " pushed");
    return;
  }
  const bool any = from != to || to % queue.slots != 0;
  const std::uint64_t expected =
      any ? (to + queue.slots - 1) / queue.slots - from / queue.slots : 0;
  std::uint64_t blocks = 0, index = from;
  Address last = 0;
  while (chain != 0) {
    block(visitor, chain, queue.node_bytes);
    if (++blocks > expected) {
      visitor.problem("queue: found more than " + std::to_string(expected) + " blocks");
      return;
    }
    const std::uint64_t end = std::min(to, (index / queue.slots + 1) * queue.slots);
    const auto next = read<Address>(chain);
    for (; index < end; ++index) {
      if (!visitor.entry({0, chain + queue.value_at + index % queue.slots * bytes})) return;
    }
    last = chain;
    chain = next;
  }
  if (blocks != expected)
    visitor.problem("queue: found " + std::to_string(blocks) + " blocks, expected " +
                    std::to_string(expected));
  else if (last != back)
    visitor.problem("queue: its last block is not where the chain ends");
}

}  // namespace perdure::inspect
