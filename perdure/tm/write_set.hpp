// SPDX-License-Identifier: BSD-3-Clause
//
// WriteSet: what a transaction of a write-back STM has stored and no other thread sees yet
// (TinySTM's write-back with encounter-time locks: Felber, Fetzer, Riegel, PPoPP '08). It maps a
// word's address to the place of its newest value. The store of the values is a template parameter:
// `Writes` is a private buffer (PrivateWrites), or a log in persistent memory in which the
// transaction executes (papers: Blurred Persistence, section III-A).
//
// Use with any TM of this folder: call own(a) before the first store to a stripe, and put() instead
// of the TM's store; reads ask find() first; before_publish copies the values to their addresses;
// the TM's own undo log stays empty, so that its rollback restores nothing.
// Thread safety: it belongs to one transaction.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "perdure/base/checksum.hpp"

namespace perdure::tm {

/// Where new values lie: W w; places count from 0 in the order of adding.
///   w.add(address, value)             a new place; if it throws, nothing has changed
///   w.replace(place, address, value)  the place of a newer value of the same word, either another
///                                     one or the same; throws as add does
///   w.value(place)                    the value stored there last
// clang-format off
template <class W>
concept WriteStore = requires(W& w, const W& c, std::uint64_t n) {
  { w.add(n, n) } -> std::same_as<std::uint64_t>;
  { w.replace(n, n, n) } -> std::same_as<std::uint64_t>;
  { c.value(n) } -> std::same_as<std::uint64_t>;
};
// clang-format on

struct PrivateWrites {
  struct Entry {
    std::uint64_t address, value;
  };
  std::uint64_t add(std::uint64_t address, std::uint64_t value) {
    entries.push_back({address, value});
    return entries.size() - 1;
  }
  std::uint64_t replace(std::uint64_t place, std::uint64_t, std::uint64_t value) noexcept {
    entries[place].value = value;
    return place;
  }
  [[nodiscard]] std::uint64_t value(std::uint64_t place) const noexcept {
    return entries[place].value;
  }
  std::vector<Entry> entries;
};

/// The index: maps a word's address to the place of its newest value. It is cleared in constant
/// time, by a new generation.
class WriteIndex {
 public:
  WriteIndex() : cells_(256) {}
  [[nodiscard]] bool empty() const noexcept { return used_ == 0; }
  /// Null if the word was not written.
  [[nodiscard]] const std::uint64_t* find(std::uint64_t address) const noexcept {
    const Cell& c = cells_[cell(address)];
    return c.generation == generation_ ? &c.place : nullptr;
  }
  /// Makes space for `more` calls of put(), which may only be made within it.
  void reserve(std::uint64_t more) {
    while ((used_ + more) * 2 > cells_.size()) grow();
  }
  void put(std::uint64_t address, std::uint64_t place) noexcept {
    Cell& c = cells_[cell(address)];
    used_ += c.generation == generation_ ? 0 : 1;
    c = {address, place, generation_};
  }
  void clear() noexcept {
    ++generation_;
    used_ = 0;
  }

 private:
  struct Cell {
    std::uint64_t address = 0, place = 0, generation = 0;
  };
  [[nodiscard]] std::size_t cell(std::uint64_t address) const noexcept {
    // Either the address's own cell, or the free one where it would be.
    std::size_t i = static_cast<std::size_t>(base::mix(address)) & (cells_.size() - 1);
    while (cells_[i].generation == generation_ && cells_[i].address != address)
      i = (i + 1) & (cells_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& c : old)
      if (c.generation == generation_) cells_[cell(c.address)] = c;
  }
  std::vector<Cell> cells_;
  std::uint64_t generation_ = 1, used_ = 0;
};

template <class Writes>
class WriteSet {
 public:
  explicit WriteSet(Writes writes) : writes_(std::move(writes)) {
    static_assert(WriteStore<Writes>);
  }
  [[nodiscard]] bool empty() const noexcept { return index_.empty(); }
  /// Returns false if the transaction has not written the word.
  [[nodiscard]] bool find(std::uint64_t address, std::uint64_t& value) const noexcept {
    const std::uint64_t* const place = index_.find(address);
    if (place == nullptr) return false;
    value = writes_.value(*place);
    return true;
  }
  void put(std::uint64_t address, std::uint64_t value) {
    index_.reserve(1);  // the step that can fail comes first
    const std::uint64_t* const place = index_.find(address);
    index_.put(address, place == nullptr ? writes_.add(address, value)
                                         : writes_.replace(*place, address, value));
  }
  void clear() noexcept { index_.clear(); }
  [[nodiscard]] Writes& writes() noexcept { return writes_; }
  [[nodiscard]] const Writes& writes() const noexcept { return writes_; }

 private:
  Writes writes_;
  WriteIndex index_;
};

}  // namespace perdure::tm
