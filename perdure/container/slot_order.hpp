// SPDX-License-Identifier: BSD-3-Clause
//
// slot_order<Capacity>: the order of the entries of a B+-tree node, whose slots are not sorted.
//
// It is a permutation of all slots: the first count() are the entries in key order, the others are
// free. Inserting an entry anywhere stores its key, its value and the order; removing one, or the
// upper half, stores the order alone: no entry ever moves within a node, so nothing is logged for
// moving. Up to 15 slots it is one word (4 bits of count, 15 of 4 bits); above, one byte per slot.
// Thread safety: plain values.
// Source: the permuter of Mao, Kohler, Morris, "Cache Craftiness for Fast Multicore Key-Value
// Storage" (Masstree, EuroSys 2012), section 4.6.2; unsorted nodes as in Chen, Jin, "Persistent
// B+-Trees in Non-Volatile Main Memory" (VLDB 2015).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "perdure/api/persistent.hpp"

namespace perdure::detail {

template <unsigned Capacity, bool Small = (Capacity <= 15)>
class slot_order;

/// The order in one word.
template <unsigned Capacity>
class slot_order<Capacity, true> {
 public:
  /// Entries in slots 0 ... count - 1, in that order.
  static constexpr slot_order first(unsigned count) {
    slot_order order{};
    order.bits_ = 0xedcba98765432100ULL | count;
    return order;
  }
  [[nodiscard]] constexpr unsigned count() const { return static_cast<unsigned>(bits_ & 15); }
  [[nodiscard]] constexpr unsigned operator[](unsigned i) const {
    return static_cast<unsigned>(bits_ >> (4 * i + 4) & 15);
  }

  /// Opens position `at` <= count() < Capacity for an entry. Returns the slot to fill.
  constexpr unsigned insert(unsigned at) {
    const unsigned n = count(), slot = (*this)[n];
    // Positions at ... n - 1 move up by one, over the free slot's position n.
    const std::uint64_t below = low(at), above = ~low(n + 1), middle = ~below & low(n);
    bits_ = (bits_ & (below | above)) | (bits_ & middle) << 4 | std::uint64_t{slot} << (4 * at + 4);
    ++bits_;
    return slot;
  }
  /// Removes the entry at position `at`; its slot becomes free.
  constexpr void erase(unsigned at) {
    const unsigned n = count(), slot = (*this)[at];
    const std::uint64_t below = low(at), above = ~low(n), middle = ~low(at + 1) & low(n);
    bits_ = (bits_ & (below | above)) | (bits_ & middle) >> 4 | std::uint64_t{slot} << (4 * n);
    --bits_;
  }
  /// Keeps only the first n entries.
  constexpr void truncate(unsigned n) { bits_ = (bits_ & ~std::uint64_t{15}) | n; }

  /// Writes this order over `old` at `where`, if they differ.
  template <class Tx>
  void store(Tx& tx, p<slot_order>& where, const slot_order& old) const {
    if (bits_ != old.bits_) tx.write(where, *this);
  }

 private:
  /// Masks the count and the positions below i.
  static constexpr std::uint64_t low(unsigned i) {
    return i >= 15 ? ~std::uint64_t{0} : (std::uint64_t{1} << (4 * i + 4)) - 1;
  }
  std::uint64_t bits_;
};

/// The order with one byte per slot.
template <unsigned Capacity>
class slot_order<Capacity, false> {
  static_assert(Capacity <= 255);

 public:
  static constexpr slot_order first(unsigned count) {
    slot_order order{};
    order.count_ = static_cast<std::uint8_t>(count);
    for (unsigned i = 0; i < Capacity; ++i) order.slot_[i] = static_cast<std::uint8_t>(i);
    return order;
  }
  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] unsigned operator[](unsigned i) const { return slot_[i]; }

  unsigned insert(unsigned at) {
    const std::uint8_t slot = slot_[count_];
    std::memmove(&slot_[at] + 1, &slot_[at], count_ - at);
    slot_[at] = slot;
    ++count_;
    return slot;
  }
  void erase(unsigned at) {
    const std::uint8_t slot = slot_[at];
    --count_;
    std::memmove(&slot_[at], &slot_[at] + 1, count_ - at);
    slot_[count_] = slot;
  }
  void truncate(unsigned n) { count_ = static_cast<std::uint8_t>(n); }

  template <class Tx>
  void store(Tx& tx, p<slot_order>& where, const slot_order& old) const {
    // Writes the runs of words that differ; the count is in the first word.
    constexpr std::size_t words = sizeof(slot_order) / 8;
    std::array<std::uint64_t, words> mine, theirs;
    std::memcpy(mine.data(), this, sizeof mine);
    std::memcpy(theirs.data(), &old, sizeof theirs);
    auto* to = reinterpret_cast<std::byte*>(access::address(where));
    for (std::size_t from = 0; from < words;) {
      if (mine[from] == theirs[from]) {
        ++from;
        continue;
      }
      std::size_t end = from + 1;
      while (end < words && mine[end] != theirs[end]) ++end;
      tx.write_bytes(to + 8 * from, &mine[from], 8 * (end - from));
      from = end;
    }
  }

 private:
  std::uint8_t count_;
  std::uint8_t slot_[(Capacity + 1 + 7) / 8 * 8 - 1];
};

}  // namespace perdure::detail
