// SPDX-License-Identifier: BSD-3-Clause
//
// segments<Field>: an array that grows without moving: the storage of vector, and of hash_map's
// directory.
//
// Doubling and copying would put a whole vector into one transaction's record, which the log
// bounds. Here the first segment holds 2^shift fields and segment k >= 0 of the table holds the
// next 2^(shift + k): the index's highest bit finds its segment, and an array that was made large
// enough is one segment, found with one load. Fields of a new segment are undefined until written.
// Thread safety: that of the transaction. Crash invariants: none of its own. Zero bytes are an
// empty array.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "perdure/api/persistent.hpp"

namespace perdure::detail {

template <class Field>
class segments {
 public:
  /// Returns the field at i. REQUIRES: grow(tx, i) was called.
  template <class Tx>
  [[nodiscard]] Field* at(Tx& tx, std::uint64_t i) const {
    const std::uint64_t high = i >> tx.read(shift_);
    if (high == 0) return tx.read(first_) + i;
    const unsigned k = static_cast<unsigned>(std::bit_width(high)) - 1;
    return tx.read(tx.read(rest_)->segment[k]) + (i - (std::uint64_t{1} << (tx.read(shift_) + k)));
  }

  /// Returns whether at(tx, i) exists.
  template <class Tx>
  [[nodiscard]] bool holds(Tx& tx, std::uint64_t i) const {
    if (tx.read(first_) == nullptr) return false;
    const std::uint64_t high = i >> tx.read(shift_);
    if (high == 0) return true;
    const Table* table = tx.read(rest_);
    const unsigned k = static_cast<unsigned>(std::bit_width(high)) - 1;
    return table != nullptr && k < table_size && tx.read(table->segment[k]) != nullptr;
  }

  /// Makes the segment of i if it does not exist. The first segment is made for `first` fields.
  template <class Tx>
  void grow(Tx& tx, std::uint64_t i, std::uint64_t first) {
    if (tx.read(first_) == nullptr) {
      const unsigned shift =
          static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(first, 1) - 1));
      Field* segment = make(tx, std::uint64_t{1} << shift);  // before any write: it may throw
      tx.write(shift_, shift);
      tx.write(first_, segment);
    }
    const unsigned shift = static_cast<unsigned>(tx.read(shift_));
    const std::uint64_t high = i >> shift;
    if (high == 0) return;
    const unsigned k = static_cast<unsigned>(std::bit_width(high)) - 1;
    if (k >= table_size) too_big(i);
    Table* table = tx.read(rest_);
    if (table == nullptr) {
      table = tx.template make<Table>();
      tx.write(rest_, table);
    }
    if (tx.read(table->segment[k]) == nullptr)
      tx.write(table->segment[k], make(tx, std::uint64_t{1} << (shift + k)));
  }

  /// Frees the segments that hold nothing below `count`, except the first of them: so a size that
  /// moves around a boundary does not allocate and free at every step.
  template <class Tx>
  void trim(Tx& tx, std::uint64_t count) {
    Table* table = tx.read(rest_);
    if (table == nullptr) return;
    const unsigned shift = static_cast<unsigned>(tx.read(shift_));
    bool spare = false;
    for (unsigned k = 0; k < table_size; ++k) {
      if (k + shift < 64 && std::uint64_t{1} << (shift + k) < count) continue;
      Field* segment = tx.read(table->segment[k]);
      if (segment == nullptr) return;
      if (!spare) {
        spare = true;
        continue;
      }
      tx.free(segment);
      tx.write(table->segment[k], nullptr);
    }
  }

  /// Frees all segments.
  template <class Tx>
  void clear(Tx& tx) {
    each_segment(tx, [&](Field* segment) { tx.free(segment); });
    if (Table* table = tx.read(rest_)) {
      tx.free(table);
      tx.write(rest_, nullptr);
    }
    if (tx.read(first_) != nullptr) tx.write(first_, nullptr);
    if (tx.read(shift_) != 0) tx.write(shift_, 0);
  }

  /// free_some() of a container whose `size` first fields hold Stored values.
  template <class Stored, class Tx>
  bool free_some(Tx& tx, p<std::uint64_t>& size, std::uint64_t& blocks) {
    const std::uint64_t n = tx.read(size);
    std::uint64_t left = n;
    if constexpr (!std::is_same_v<Stored, void>) {
      while (left != 0 && Stored::free_some(tx, *at(tx, left - 1), blocks)) --left;
    } else {
      left = 0;
    }
    if (left != n) tx.write(size, left);
    if (left != 0) return false;
    clear(tx);  // at most 42 segments
    return true;
  }

  /// Calls f(fields, n) for the runs of consecutive fields that make up [from, to).
  template <class Tx, class F>
  void each_run(Tx& tx, std::uint64_t from, std::uint64_t to, F&& f) const {
    const std::uint64_t shift = tx.read(shift_);
    while (from < to) {
      const std::uint64_t high = from >> shift,
                          end = high == 0 ? std::uint64_t{1} << shift : std::bit_floor(from) * 2;
      const std::uint64_t n = std::min(to, end) - from;
      f(at(tx, from), n);
      from += n;
    }
  }

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    each_segment(tx, [&](const Field* segment) { f(static_cast<const void*>(segment)); });
    if (const Table* table = tx.read(rest_)) f(static_cast<const void*>(table));
  }

 private:
  static constexpr unsigned table_size = 40;
  struct Table {
    ptr<Field> segment[table_size];
  };

  template <class Tx, class F>
  void each_segment(Tx& tx, F&& f) const {
    if (Field* first = tx.read(first_)) f(first);
    const Table* table = tx.read(rest_);
    for (unsigned k = 0; table != nullptr && k < table_size; ++k) {
      if (Field* segment = tx.read(table->segment[k])) f(segment);
    }
  }

  [[noreturn]] static void too_big(std::uint64_t n) {
    throw error(Status(Code::too_big, "perdure: found an array of " + std::to_string(n) +
                                          " elements, expected less than 64 TiB of them"));
  }

  template <class Tx>
  static Field* make(Tx& tx, std::uint64_t n) {
    if (n > (std::uint64_t{1} << 46) / sizeof(Field)) too_big(n);
    return reinterpret_cast<Field*>(tx.alloc(n * sizeof(Field)));
  }

  p<std::uint64_t> shift_;
  ptr<Field> first_;
  ptr<Table> rest_;
};

}  // namespace perdure::detail
