// SPDX-License-Identifier: BSD-3-Clause
//
// Image: the durable words of a medium at one instant, with a hash that follows every change and a
// journal for going back. The arena in which recovery runs is updated from one image to the next by
// the lines that differ, which are noted here.
// Hash: word i with value v contributes mix(v + mix(i + 1)), and all contributions are combined by
// exclusive or (Zobrist, 1970): equal images have equal hashes, however they were made.
// Thread safety: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "perdure/base/checksum.hpp"

namespace perdure::medium {

/// Lines that must be copied again, each listed once.
class DirtyLines {
 public:
  explicit DirtyLines(std::size_t lines) : flag_(lines, 0) {}
  /// Makes it possible to mark at least `lines` lines.
  void cover(std::size_t lines) {
    if (lines > flag_.size()) flag_.resize(lines, 0);
  }
  void mark(std::uint64_t line) {
    if (flag_[line] != 0) return;
    flag_[line] = 1;
    list_.push_back(static_cast<std::uint32_t>(line));
  }
  /// Calls f(line) for each and forgets them.
  template <class F>
  void take(F&& f) {
    for (const std::uint32_t line : list_) {
      flag_[line] = 0;
      f(line);
    }
    list_.clear();
  }

 private:
  std::vector<std::uint8_t> flag_;
  std::vector<std::uint32_t> list_;
};

/// One word of the file (its index) and a value.
struct Word {
  std::uint32_t index = 0;
  std::uint64_t value = 0;
};

class Image {
 public:
  Image(std::vector<std::uint64_t> words, std::uint64_t data_bytes)
      : data_bytes_(data_bytes), words_(std::move(words)), dirty_(words_.size() / 8) {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (words_[i] != 0) dirty_.mark(i / 8);  // an arena is initially zero
  }

  [[nodiscard]] std::uint64_t word(std::uint64_t i) const noexcept { return words_[i]; }
  [[nodiscard]] const std::uint64_t* words() const noexcept { return words_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return data_bytes_; }
  void data_bytes(std::uint64_t n) noexcept { data_bytes_ = n; }
  /// Makes the image at least `words` words long; added words are zero.
  void cover(std::size_t words) {
    if (words <= words_.size()) return;
    words_.resize(words, 0);
    dirty_.cover(words / 8);
  }
  [[nodiscard]] DirtyLines& dirty() noexcept { return dirty_; }

  void set(std::uint64_t i, std::uint64_t value) {
    const std::uint64_t old = words_[i];
    if (old == value) return;
    journal_.push_back({static_cast<std::uint32_t>(i), old});
    put(i, old, value);
  }
  /// The hash that set() would produce.
  [[nodiscard]] std::uint64_t hash_with(std::uint64_t hash, const Word& w) const noexcept {
    return hash ^ part(w.index, words_[w.index]) ^ part(w.index, w.value);
  }
  /// Empties the journal: afterwards no earlier mark() is valid.
  void forget_the_past() noexcept { journal_.clear(); }
  /// A position for back_to().
  [[nodiscard]] std::size_t mark() const noexcept { return journal_.size(); }
  void back_to(std::size_t mark) {
    while (journal_.size() > mark) {
      const Word w = journal_.back();
      journal_.pop_back();
      put(w.index, words_[w.index], w.value);
    }
  }

 private:
  static std::uint64_t part(std::uint64_t i, std::uint64_t v) noexcept {
    return base::mix(v + base::mix(i + 1));
  }
  void put(std::uint64_t i, std::uint64_t old, std::uint64_t value) {
    hash_ ^= part(i, old) ^ part(i, value);
    words_[i] = value;
    dirty_.mark(i / 8);
  }

  std::uint64_t data_bytes_, hash_ = 0;
  std::vector<std::uint64_t> words_;
  DirtyLines dirty_;
  std::vector<Word> journal_;
};

}  // namespace perdure::medium
