// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of a hash table of the design of Tokyo Cabinet's in-memory database (tc_layout.hpp), as
// the systems of Blurred Persistence run it (papers: Blurred Persistence, Table I). The code is the
// same for every system under test (see models.md).
//
// Not Tokyo Cabinet's: it has no locks of its own, because the system isolates; a value that needs
// more words than the old one moves with its record, where realloc() may extend the block; get()
// copies into a string. Iterators and the calls other than put, out and get are left out.
//
// Invariants (tc_table.hpp checks them): TCHASH-1 an in-order walk of a bucket's tree meets its
// records in the order of compare(). TCHASH-2 the list and the buckets of a map have the same
// records. TCHASH-3 a map's counts are the number of its records and the bytes of their keys and
// values. A record is not constructed: only what was stored is read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bench/workloads/recast.hpp"
#include "bench/workloads/tc_layout.hpp"

namespace bench {

/// The calls, each a part of one transaction.
template <class Model>
struct TcHash {
  using Root = TcRoot<Model>;
  using Map = TcMap<Model>;
  using Record = TcRecord<Model>;
  using Ref = typename Record::Ref;
  using Link = typename Record::Link;
  using Word = typename Record::Word;
  static constexpr std::uint64_t head_words = sizeof(Record) / sizeof(Word);

  /// Stores the value under the key, and replaces the one that is there (tcmdbput).
  template <class Tx>
  static void put(Tx& tx, Root& root, std::string_view whole_key, std::string_view value) {
    const TcKey key(whole_key);
    Map& map = root.maps[key.map];
    Link* const place = find(tx, map, key);
    if (const Ref old = tx.get(*place)) {
      replace(tx, map, *place, old, value);
      return;
    }
    const Ref record = allocate(tx, key.bytes.size(), value.size());
    store_bytes(tx, record, head_words, key.bytes);
    store_value(tx, record, key.sizes, value);
    const Ref last = tx.get(map.last);
    tx.set(record->left, Ref{});
    tx.set(record->right, Ref{});
    tx.set(record->previous, last);
    tx.set(record->next, Ref{});
    tx.set(*place, record);
    tx.set(last ? last->next : map.first, record);
    tx.set(map.last, record);
    tx.set(map.records, tx.get(map.records) + 1);
    tx.set(map.bytes, tx.get(map.bytes) + key.bytes.size() + value.size());
  }

  /// Removes the record; returns whether there was one (tcmdbout).
  template <class Tx>
  static bool out(Tx& tx, Root& root, std::string_view whole_key) {
    const TcKey key(whole_key);
    Map& map = root.maps[key.map];
    Link* const place = find(tx, map, key);
    const Ref record = tx.get(*place);
    if (!record) return false;
    tx.set(map.records, tx.get(map.records) - 1);
    tx.set(map.bytes, tx.get(map.bytes) - key.bytes.size() - value_size(tx, record));
    const Ref previous = tx.get(record->previous), next = tx.get(record->next);
    tx.set(previous ? previous->next : map.first, next);
    tx.set(next ? next->previous : map.last, previous);
    const Ref left = tx.get(record->left), right = tx.get(record->right);
    tx.set(*place, left ? left : right);
    if (left && right) {  // the right tree comes behind the largest record of the left one
      Link* end = &left->right;
      while (const Ref larger = tx.get(*end)) end = &larger->right;
      tx.set(*end, right);
    }
    tx.destroy(record);
    return true;
  }

  /// Copies the value; returns whether there is one (tcmdbget).
  template <class Tx>
  static bool get(Tx& tx, const Root& root, std::string_view whole_key, std::string& value) {
    const TcKey key(whole_key);
    const Ref record = tx.get(*find(tx, root.maps[key.map], key));
    if (!record) return false;
    load_bytes(tx, record, head_words + words_of(key.bytes.size()), value_size(tx, record), value);
    return true;
  }

  /// The record's key and value, for those who walk a map.
  template <class Tx>
  static void load(Tx& tx, const Ref& record, std::string& key, std::string& value) {
    const std::uint64_t size = tx.get(record->sizes) & TcKey::size_mask;
    load_bytes(tx, record, head_words, size, key);
    load_bytes(tx, record, head_words + words_of(size), value_size(tx, record), value);
  }

  /// The link that leads to the key's record, or would.
  template <class Tx>
  static Link* find(Tx& tx, const Map& map, const TcKey& key) {
    Link* place = &tx.get(map.buckets)[key.bucket_hash % tx.get(map.bucket_count)];
    while (const Ref record = tx.get(*place)) {
      const int side = compare(tx, key, record);
      if (side == 0) break;
      place = side < 0 ? &record->left : &record->right;
    }
    return place;
  }

  /// Negative if the key's place is on the record's left: its second hash is the larger one, or the
  /// hashes are equal and the key is shorter, or as long and less.
  template <class Tx>
  static int compare(Tx& tx, const TcKey& key, const Ref& record) {
    const auto sizes = static_cast<std::uint32_t>(tx.get(record->sizes));
    if (key.sizes != sizes) {
      const std::uint32_t ours = key.sizes & ~TcKey::size_mask, its = sizes & ~TcKey::size_mask;
      return ours != its ? (ours > its ? -1 : 1) : (key.sizes < sizes ? -1 : 1);
    }
    const auto words = recast<Word>(record);
    for (std::uint64_t i = 0; i * 8 < key.bytes.size(); ++i) {
      const std::uint64_t ours = word_at(key.bytes, i), its = tx.get(words[head_words + i]);
      if (ours != its) return __builtin_bswap64(ours) < __builtin_bswap64(its) ? -1 : 1;
    }
    return 0;
  }

 private:
  /// Those of n bytes and at least one zero byte.
  static constexpr std::uint64_t words_of(std::uint64_t n) { return n / 8 + 1; }
  static std::uint64_t word_at(std::string_view bytes, std::uint64_t i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * 8, std::min<std::size_t>(8, bytes.size() - i * 8));
    return word;
  }
  template <class Tx>
  static std::uint64_t value_size(Tx& tx, const Ref& record) {
    return tx.get(record->sizes) >> 32;
  }

  template <class Tx>
  static Ref allocate(Tx& tx, std::uint64_t key_size, std::uint64_t value_size) {
    return recast<Record>(
        tx.template allocate<Word>(head_words + words_of(key_size) + words_of(value_size)));
  }
  template <class Tx>
  static void store_value(Tx& tx, const Ref& record, std::uint32_t sizes, std::string_view value) {
    tx.set(record->sizes, std::uint64_t{value.size()} << 32 | sizes);
    store_bytes(tx, record, head_words + words_of(sizes & TcKey::size_mask), value);
  }
  template <class Tx>
  static void store_bytes(Tx& tx, const Ref& record, std::uint64_t from, std::string_view bytes) {
    const auto words = recast<Word>(record);
    for (std::uint64_t i = 0; i < words_of(bytes.size()); ++i)
      tx.set(words[from + i], word_at(bytes, i));
  }
  template <class Tx>
  static void load_bytes(Tx& tx, const Ref& record, std::uint64_t from, std::uint64_t size,
                         std::string& bytes) {
    const auto words = recast<Word>(record);
    bytes.resize(size);
    for (std::uint64_t i = 0; i * 8 < size; ++i) {
      const std::uint64_t word = tx.get(words[from + i]);
      std::memcpy(bytes.data() + i * 8, &word, std::min<std::size_t>(8, size - i * 8));
    }
  }

  /// The record keeps its place in the list and in the tree.
  template <class Tx>
  static void replace(Tx& tx, Map& map, Link& place, const Ref& old, std::string_view value) {
    const auto sizes = static_cast<std::uint32_t>(tx.get(old->sizes));
    const std::uint64_t key_size = sizes & TcKey::size_mask, before = value_size(tx, old);
    tx.set(map.bytes, tx.get(map.bytes) - before + value.size());
    Ref record = old;
    if (words_of(value.size()) > words_of(before)) {
      record = allocate(tx, key_size, value.size());
      const auto from = recast<Word>(old), to = recast<Word>(record);
      for (std::uint64_t i = 0; i < words_of(key_size); ++i)
        tx.set(to[head_words + i], tx.get(from[head_words + i]));
      const Ref previous = tx.get(old->previous), next = tx.get(old->next);
      tx.set(record->left, tx.get(old->left));
      tx.set(record->right, tx.get(old->right));
      tx.set(record->previous, previous);
      tx.set(record->next, next);
      tx.set(place, record);
      tx.set(previous ? previous->next : map.first, record);
      tx.set(next ? next->previous : map.last, record);
      tx.destroy(old);
    }
    store_value(tx, record, sizes, value);
  }
};

}  // namespace bench
