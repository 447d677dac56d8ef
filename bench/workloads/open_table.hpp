// SPDX-License-Identifier: BSD-3-Clause
//
// A hash table of fixed size with open addressing: if the bucket of a key is taken the next one is
// tried, wrapping at the end (DudeTM, ASPLOS '17, section 5.1). Two variants over the Models of
// models.md: OpenWords, from 8-byte keys to 8-byte values, and OpenTable, from keys to rows, under
// TPC-C's and TATP's tables (tpcc.hpp). Nothing is removed. A full table throws std::length_error.
// Thread safety: the caller's.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/workloads/snapshot.hpp"

namespace bench {

/// Three words per bucket, all of which an insertion stores: 3.0 writes, as in the paper's Table 1.
template <class Model>
struct OpenWords {
  static constexpr const char* layout_id = "bench::OpenWords/1";
  struct Bucket {
    typename Model::template Field<std::uint64_t> used, key, value;
  };
  typename Model::template Link<Bucket> buckets;
  /// The number of buckets, a power of two; stored once.
  typename Model::template Field<std::uint64_t> count{0ULL};

  template <class Host, class Of>
  static void prepare(Host& host, Of of, std::uint64_t n) {
    host.update([&](auto& tx, auto& root) {
      tx.set(of(root).buckets, tx.template allocate<Bucket>(n));
      tx.set(of(root).count, n);
      return true;
    });
    constexpr std::uint64_t a_transaction = 1024;
    for (std::uint64_t from = 0; from < n; from += a_transaction)
      host.update([&](auto& tx, auto& root) {
        const auto table = tx.get(of(root).buckets);
        for (std::uint64_t i = from; i < from + a_transaction; ++i) {
          snapshot(tx, table[i]);
          tx.set(table[i].used, 0ULL);
          tx.set(table[i].key, 0ULL);
          tx.set(table[i].value, 0ULL);
        }
        return true;
      });
  }
  /// Stores the value of a key; returns whether the key is new.
  template <class Tx>
  bool put(Tx& tx, std::uint64_t key, std::uint64_t value) {
    const auto table = tx.get(buckets);
    const std::uint64_t n = tx.get(count);
    for (std::uint64_t i = mix(key), tries = 0; tries < n; ++i, ++tries) {
      auto& bucket = table[i & (n - 1)];
      const bool used = tx.get(bucket.used) != 0;
      if (used && tx.get(bucket.key) != key) continue;
      snapshot(tx, bucket);
      tx.set(bucket.used, 1ULL);
      tx.set(bucket.key, key);
      tx.set(bucket.value, value);
      return !used;
    }
    throw std::length_error("an open-addressing table of " + std::to_string(n) +
                            " buckets is full");
  }
  /// Calls f(key, value) for each.
  template <class Tx, class F>
  void each(Tx& tx, F f) const {
    const auto table = tx.get(buckets);
    for (std::uint64_t i = 0, n = tx.get(count); i < n; ++i)
      if (tx.get(table[i].used) != 0) f(tx.get(table[i].key), tx.get(table[i].value));
  }
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    f(tx.read(buckets));
  }
};

template <class Model, class Row>
class OpenTable {
 public:
  static constexpr const char* layout_id = "bench::OpenTable/1";
  using Ref = typename Model::template Ref<Row>;

  template <class Host, class Of>
  static void prepare(Host& host, Of of, std::uint64_t n) {
    host.update([&](auto& tx, auto& root) {
      tx.set(of(root).buckets_, tx.template allocate<Bucket>(n));
      tx.set(of(root).count_, n);
      return true;
    });
    constexpr std::uint64_t a_transaction = 1024;
    for (std::uint64_t from = 0; from < n; from += a_transaction)
      host.update([&](auto& tx, auto& root) {
        const auto table = tx.get(of(root).buckets_);
        for (std::uint64_t i = from; i < from + a_transaction; ++i) {
          snapshot(tx, table[i]);
          tx.set(table[i].key, 0ULL);
          tx.set(table[i].row, Ref{});
        }
        return true;
      });
  }
  /// The row of a key, or null.
  template <class Tx>
  Ref find(Tx& tx, std::uint64_t key) const {
    const auto table = tx.get(buckets_);
    const std::uint64_t n = tx.get(count_);
    for (std::uint64_t i = mix(key), tries = 0; tries < n; ++i, ++tries) {
      auto& bucket = table[i & (n - 1)];
      const std::uint64_t found = tx.get(bucket.key);
      if (found == key + 1) return tx.get(bucket.row);
      if (found == 0) break;
    }
    return Ref{};
  }
  /// `key` must not exist.
  template <class Tx>
  void insert(Tx& tx, std::uint64_t key, Ref row) {
    const auto table = tx.get(buckets_);
    const std::uint64_t n = tx.get(count_);
    for (std::uint64_t i = mix(key), tries = 0; tries < n; ++i, ++tries) {
      auto& bucket = table[i & (n - 1)];
      if (tx.get(bucket.key) != 0) continue;
      snapshot(tx, bucket);
      tx.set(bucket.key, key + 1);
      tx.set(bucket.row, row);
      return;
    }
    throw std::length_error("an open-addressing table of " + std::to_string(n) +
                            " buckets is full");
  }
  /// Calls f(key, row) for every row, in no order.
  template <class Tx, class F>
  void each(Tx& tx, F f) const {
    const auto table = tx.get(buckets_);
    for (std::uint64_t i = 0, n = tx.get(count_); i < n; ++i)
      if (const std::uint64_t key = tx.get(table[i].key); key != 0)
        f(key - 1, tx.get(table[i].row));
  }
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    f(tx.get(buckets_));
    each(tx, [&f](std::uint64_t, const Ref& row) { f(row); });
  }
  /// Checks that each key is found, once.
  template <class Tx>
  void audit(Tx& tx, const std::string& name, std::vector<std::string>& problems) const {
    std::uint64_t rows = 0, lost = 0;
    each(tx, [&](std::uint64_t key, const Ref& row) {
      ++rows;
      if (!(find(tx, key) == row)) ++lost;
    });
    if (lost != 0)
      problems.push_back(name + ": of " + std::to_string(rows) + " rows " + std::to_string(lost) +
                         " are not found by their keys");
  }

 private:
  struct Bucket {
    typename Model::template Field<std::uint64_t> key;  // the key plus one; 0: empty
    typename Model::template Link<Row> row;
  };
  typename Model::template Link<Bucket> buckets_;
  typename Model::template Field<std::uint64_t> count_{0ULL};
};

}  // namespace bench
