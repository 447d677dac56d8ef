// SPDX-License-Identifier: BSD-3-Clause
//
// What lies in memory of a hash table of the design of Tokyo Cabinet's in-memory database (TCMDB,
// version 1.4.48): a key's hash names one of eight maps. A map is an array of buckets and a list of
// all of its records in the order of insertion. A bucket is a binary search tree that nothing
// balances. A record is one block: its sizes, its links, the key with a zero byte behind it, and
// the value with another. All sizes and counts are words of 8 bytes, and bytes are stored in words,
// because a Field is what a transaction stores (models.md). tc_hash.hpp has the calls.
#pragma once

#include <cstdint>
#include <string_view>

namespace bench {

/// What a key's bytes say about its place; the constants are Tokyo Cabinet's, and so is the order
/// of an iteration.
struct TcKey {
  static constexpr std::uint32_t maps = 8, buckets_by_default = 65536 / maps + 17;
  static constexpr std::uint32_t size_mask = 0xfffff;  ///< a key's size; the other bits are a hash

  std::string_view bytes;
  std::uint32_t map;          ///< its number
  std::uint32_t bucket_hash;  ///< modulo the number of buckets
  std::uint32_t sizes;  ///< the key's size and, above it, the hash that orders a bucket's tree

  /// Of longer keys the first bytes count.
  explicit TcKey(std::string_view key) : bytes(key.substr(0, size_mask)) {
    map = folded(bytes.rbegin(), bytes.rend(), 0x20071123, 33) % maps;
    bucket_hash = folded(bytes.begin(), bytes.end(), 19780211, 37);
    const std::uint32_t second = folded(bytes.rbegin(), bytes.rend(), 0x13579bdf, 31);
    sizes = (second & ~size_mask) | static_cast<std::uint32_t>(bytes.size());
  }

 private:
  template <class Iterator>
  static std::uint32_t folded(Iterator from, Iterator end, std::uint32_t hash,
                              std::uint32_t factor) {
    for (; from != end; ++from) hash = hash * factor + static_cast<unsigned char>(*from);
    return hash;
  }
};

template <class Model>
struct TcRecord {
  static constexpr const char* layout_id = "bench::TcRecord/1";
  using Ref = typename Model::template Ref<TcRecord>;
  using Link = typename Model::template Link<TcRecord>;
  using Word = typename Model::template Field<std::uint64_t>;
  Word sizes;  ///< TcKey::sizes; the value's bytes in the upper half
  Link left, right;
  Link previous, next;  ///< in the map's list; the key's words follow, then the value's
};

template <class Model>
struct TcMap {
  using Record = TcRecord<Model>;
  typename Model::template Link<typename Record::Link> buckets;
  typename Record::Link first, last;
  typename Record::Word bucket_count{0ULL}, records{0ULL}, bytes{0ULL};
};

template <class Model>
struct TcRoot {
  static constexpr const char* layout_id = "bench::TcRoot/1";
  TcMap<Model> maps[TcKey::maps];

  /// For Perdure's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (const auto& map : maps) {
      if (const auto buckets = tx.read(map.buckets)) f(buckets);
      for (auto record = tx.read(map.first); record; record = tx.read(record->next)) f(record);
    }
  }
};

}  // namespace bench
