// SPDX-License-Identifier: BSD-3-Clause
//
// AliasTable: where the newest values of words are that the data region does not have yet (papers:
// SoftWrAP, MSST '15, section IV-A): an open-addressing hash table from a word's offset to its
// value in DRAM. Entries are added by compare-and-swap of an empty one and never deleted: the table
// is emptied as a whole, when the data region has its values. Retirement (the paper's word for a
// checkpoint of one table) reads it from end to end.
//
// An entry is claimed, given its value, then published: a thread that looks for the word meanwhile
// finds none, and takes the value from before. What an aborted wrap has added is forgotten: its
// entry stays, void, until the word is added again; the data region never gets its value. (The
// paper leaves aborts open.)
// Thread safety: any thread may call find, add and for_each; one thread at a time writes a word's
// value (the engine isolates). One thread calls reset and clear, while no other thread is here.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "papers/names.hpp"
#include "perdure/base/checksum.hpp"

namespace perdure::papers::softwrap {

class AliasTable {
 public:
  explicit AliasTable(std::uint64_t entries) { reset(entries); }

  [[nodiscard]] std::uint64_t capacity() const noexcept { return mask_ + 1; }
  // Relaxed: a count that pairs with nothing.
  [[nodiscard]] std::uint64_t size() const noexcept {
    return size_.load(std::memory_order_relaxed);
  }
  /// Returns the number of entries from which on none is added: probes stay short, and there is
  /// always an empty entry that ends them.
  [[nodiscard]] std::uint64_t limit() const noexcept { return capacity() / 8 * 7; }

  /// A region of this many bytes is looked up as a whole: if may_have() is false, none of its words
  /// is here.
  static constexpr std::uint64_t region_bytes = 1024;
  [[nodiscard]] bool may_have(std::uint64_t offset) const noexcept {
    const std::uint64_t bit = bit_of(offset);
    // Relaxed: it pairs with nothing. A thread that must see a word has synchronized with its
    // writer.
    return (regions_[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) != 0;
  }
  /// Returns the word's value, or null. `offset` is a multiple of 8 below 2^63.
  [[nodiscard]] std::uint64_t* find(std::uint64_t offset) noexcept {
    const std::uint64_t key = key_of(offset);
    for (std::uint64_t i = place(offset);; i = (i + 1) & mask_) {
      // Acquire: pairs with the release in add(): the value is there.
      const std::uint64_t seen = entries_[i].key.load(std::memory_order_acquire);
      if (seen == key) return &entries_[i].value;
      if (seen == 0 || (seen & ~(claimed | voided)) == key) return nullptr;
    }
  }
  /// Returns the word's value, which becomes `value` if it was not there. Null: the table is full.
  [[nodiscard]] std::uint64_t* add(std::uint64_t offset, std::uint64_t value) noexcept {
    const std::uint64_t key = key_of(offset);
    for (std::uint64_t i = place(offset);;) {
      Entry& e = entries_[i];
      std::uint64_t seen = e.key.load(std::memory_order_acquire);  // pairs with the releases below
      if (seen == key) return &e.value;
      if (seen == (key | voided)) {
        e.value = value;
        e.key.store(key, std::memory_order_release);  // pairs with find()
        return &e.value;
      }
      if (seen == (key | claimed)) continue;  // another thread is adding it
      if (seen == 0) {
        if (size() >= limit()) return nullptr;
        // Another thread took the entry: look at it again.
        if (!e.key.compare_exchange_strong(seen, key | claimed, std::memory_order_acq_rel))
          continue;
        size_.fetch_add(1, std::memory_order_relaxed);
        note_region(offset);
        e.value = value;
        e.key.store(key, std::memory_order_release);  // pairs with find()
        return &e.value;
      }
      i = (i + 1) & mask_;
    }
  }
  /// Makes an entry that add() returned void, as if the word had never been there. Called by the
  /// thread that added it.
  static void forget(std::uint64_t* value) noexcept {
    auto* const e =
        reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(value) - offsetof(Entry, value));
    e->key.fetch_or(voided, std::memory_order_release);  // pairs with find(), add()
  }
  /// Calls f(offset, value) for each entry.
  template <class F>
  void for_each(F&& f) const {
    for (std::uint64_t i = 0; i <= mask_; ++i)
      if (const std::uint64_t key = entries_[i].key.load(std::memory_order_acquire);
          key != 0 && (key & voided) == 0)  // pairs with add(), forget()
        f((key & ~published) >> 1, entries_[i].value);
  }
  /// Empties it.
  void clear() noexcept {
    if (size() == 0) return;
    for (std::uint64_t i = 0; i <= mask_; ++i) entries_[i].key.store(0, std::memory_order_relaxed);
    for (std::uint64_t i = 0; i < region_words(); ++i)
      regions_[i].store(0, std::memory_order_relaxed);
    // Threads that may use it afterwards learn so from the table's state.
    size_.store(0, std::memory_order_relaxed);
  }
  /// Empties it and makes space for `entries` (rounded up to a power of two, at least 64). Throws
  /// std::bad_alloc, unchanged.
  void reset(std::uint64_t entries) {
    entries = std::bit_ceil(entries < 64 ? std::uint64_t{64} : entries);
    auto regions = std::make_unique<std::atomic<std::uint64_t>[]>(entries * bits_an_entry / 64);
    entries_ = std::make_unique<Entry[]>(entries);
    regions_ = std::move(regions);
    mask_ = entries - 1;
    size_.store(0, std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> key{0};  // 0: empty
    std::uint64_t value = 0;
  };
  static constexpr std::uint64_t claimed = 1, voided = 2, published = std::uint64_t{1} << 63;
  // Offset 0 has a key too; the lowest bits are free.
  [[nodiscard]] static constexpr std::uint64_t key_of(std::uint64_t offset) noexcept {
    return offset << 1 | published;
  }
  [[nodiscard]] std::uint64_t place(std::uint64_t offset) const noexcept {
    return base::mix(offset) & mask_;
  }

  // One bit per hash of a region of which words were added: a page is read without a look-up for
  // each of its words.
  static constexpr std::uint64_t bits_an_entry = 4;
  [[nodiscard]] std::uint64_t region_words() const noexcept {
    return capacity() * bits_an_entry / 64;
  }
  [[nodiscard]] std::uint64_t bit_of(std::uint64_t offset) const noexcept {
    return base::mix(offset / region_bytes) & (capacity() * bits_an_entry - 1);
  }
  void note_region(std::uint64_t offset) noexcept {
    const std::uint64_t bit = bit_of(offset), mask = std::uint64_t{1} << bit % 64;
    std::atomic<std::uint64_t>& word = regions_[bit / 64];
    if ((word.load(std::memory_order_relaxed) & mask) == 0)
      word.fetch_or(mask, std::memory_order_relaxed);  // the entry's release publishes it too
  }

  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> regions_;
  std::uint64_t mask_ = 0;
  alignas(128) std::atomic<std::uint64_t> size_{0};
};

}  // namespace perdure::papers::softwrap
