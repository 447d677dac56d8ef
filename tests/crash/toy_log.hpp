// SPDX-License-Identifier: BSD-3-Clause
//
// ToyLog: a redo log as one might write it by hand, directly on a medium, either correct or with
// one planted bug, which the explorer must find. 64 words of data, eight blocks each of which is
// allocated or not and owned by a word or not.
//
//   header  two copies with a checksum: the number of the first record that must be replayed
//   record  in one of 16 slots of 256 bytes, by its number: number, pairs, (word of the data
//           region, value) ..., checksum
//   commit  record streamed, fence, acknowledge, data region stored and flushed
//   every eighth: fence (the data region is durable), header, then slots are used again
// Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "perdure/base/checksum.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::test {

enum class Bug : std::uint8_t {
  none,
  /// The data region's lines are not flushed before their records are released.
  missing_flush,
  missing_fence,            ///< nor fenced
  fence_too_early,          ///< before the record's last line
  mark_before_data,         ///< a mark makes a record valid, not ordered with what it marks
  recovery_not_repeatable,  ///< it releases the log before the data region is durable
  /// A block is allocated in the data region before its record is durable.
  leak,
  /// A block is freed in the data region before its record is durable: its owner, which still
  /// exists, may free it again.
  double_free,
  early_acknowledgement,  ///< before the fence
  hole,                   ///< recovery continues after a missing record
  torn_header             ///< one copy, no checksum, two lines
};

class ToyLog {
 public:
  static constexpr std::uint64_t words = 64, blocks = 8;
  static constexpr std::uint64_t log_bytes = 64 << 10, data_bytes = 4096;
  // The data region, in words: data, then which word owns which block (block + 1, or 0), then the
  // bitmap of allocated blocks.
  static constexpr std::uint64_t owner = words, bitmap = words + blocks;

  ToyLog(medium::Medium& medium, Bug bug) : medium_(medium), bug_(bug) {}

  // Word of the data region, value.
  using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  /// `acknowledge()` is called when the transaction is (claimed to be) durable.
  template <class F>
  void commit(const Pairs& pairs, F&& acknowledge) {
    const std::uint64_t number = next_++;
    for (const auto& [word, value] : pairs)
      if (word == bitmap) {
        const std::uint64_t now = data(bitmap);
        if ((bug_ == Bug::leak && (value & ~now) != 0) ||
            (bug_ == Bug::double_free && (now & ~value) != 0))
          store_data(word, value);
      }
    write_record(number, pairs);
    if (bug_ == Bug::early_acknowledgement) acknowledge();
    // The record is durable before the data region changes and before the acknowledgement.
    if (bug_ != Bug::missing_fence && bug_ != Bug::hole && bug_ != Bug::fence_too_early) fence();
    if (bug_ == Bug::hole && number % 2 == 0)
      // Two records share a fence: this is allowed if recovery stops at the first missing one.
      fence();
    if (bug_ == Bug::hole) {
      pending_.insert(pending_.end(), pairs.begin(), pairs.end());
      if (number % 2 != 0) return;
    }
    if (bug_ != Bug::early_acknowledgement) acknowledge();
    for (const auto& [word, value] : bug_ == Bug::hole ? std::exchange(pending_, {}) : pairs)
      store_data(word, value);
    if (number % 8 == 0) {
      // The data region is durable before the header says so.
      if (bug_ != Bug::missing_fence) fence();
      write_header(next_);
      first_ = next_;
    }
  }

  void format() {
    write_header(1);
    for (std::uint64_t i = 0; i < words; ++i) store_data(i, i);
    fence();
  }

  /// After a crash: makes the data region the state after the last record found.
  void recover() {
    first_ = read_header();
    next_ = first_;
    for (std::uint64_t n = first_, missing = 0; missing < 2 && n < first_ + 16; ++n) {
      Pairs pairs;
      if (!read_record(n, pairs)) {
        if (bug_ != Bug::hole) break;
        ++missing;
        continue;
      }
      for (const auto& [word, value] : pairs) store_data(word, value);
      next_ = n + 1;
    }
    if (bug_ != Bug::recovery_not_repeatable) fence();  // the data region before the header
    write_header(next_);
    first_ = next_;
  }

  /// Transactions are numbered 1, 2, ...: the number in the data region.
  [[nodiscard]] std::uint64_t transactions() const noexcept { return next_ - 1; }
  [[nodiscard]] std::uint64_t data(std::uint64_t word) const {
    std::uint64_t v = 0;
    std::memcpy(&v, medium_.at(log_bytes + word * 8), 8);
    return v;
  }

 private:
  static constexpr std::uint64_t slot_bytes = 256, first_slot = 8192, slots = 16, copy_b = 4096;

  void fence() { (void)medium_.fence(); }
  void store_data(std::uint64_t word, std::uint64_t value) {
    medium_.store(log_bytes + word * 8, &value, 8);
    if (bug_ != Bug::missing_flush) medium_.flush(log_bytes + word * 8, 8);
  }
  static std::uint64_t sum(const std::uint64_t* w, std::uint64_t n) {
    return base::hash_bytes(w, n * 8, 1) | 1;
  }

  void write_record(std::uint64_t number, const Pairs& pairs) {
    std::array<std::uint64_t, slot_bytes / 8> w{};
    w[0] = number;
    w[1] = pairs.size();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      w[2 + 2 * i] = pairs[i].first;
      w[3 + 2 * i] = pairs[i].second;
    }
    w.back() = bug_ == Bug::mark_before_data ? ~number : sum(w.data(), w.size() - 1);
    const std::uint64_t at = first_slot + number % slots * slot_bytes;
    medium_.stream(at, w.data(), slot_bytes - 64);
    if (bug_ == Bug::fence_too_early) fence();
    medium_.stream(at + slot_bytes - 64, w.data() + w.size() - 8, 64);
  }
  bool read_record(std::uint64_t number, Pairs& pairs) const {
    std::array<std::uint64_t, slot_bytes / 8> w;
    std::memcpy(w.data(), medium_.at(first_slot + number % slots * slot_bytes), slot_bytes);
    const bool whole = bug_ == Bug::mark_before_data ? w.back() == ~number
                                                     : w.back() == sum(w.data(), w.size() - 1);
    if (!whole || (w[0] != number && bug_ != Bug::mark_before_data) || w[1] > 14) return false;
    for (std::uint64_t i = 0; i < w[1]; ++i) {
      if (w[2 + 2 * i] > bitmap) return false;
      pairs.emplace_back(w[2 + 2 * i], w[3 + 2 * i]);
    }
    return true;
  }

  void write_header(std::uint64_t first) {
    ++generation_;
    if (bug_ == Bug::torn_header) {  // two lines; one alone has no meaning
      const std::uint64_t a = first ^ generation_ * 1000, b = generation_;
      medium_.store(0, &a, 8);
      medium_.store(64, &b, 8);
      medium_.flush(0, 128);
      fence();
      return;
    }
    std::array<std::uint64_t, 8> w{first, generation_};
    w[7] = sum(w.data(), 7);
    const std::uint64_t newest = newest_;
    for (const std::uint64_t at : {copy_b - newest, newest}) {
      // The copy that was read is written last: one copy is whole at any time.
      medium_.store(at, w.data(), 64);
      medium_.flush(at, 64);
      fence();
      newest_ = at;
    }
  }
  std::uint64_t read_header() {
    if (bug_ == Bug::torn_header) {
      std::uint64_t a = 0, b = 0;
      std::memcpy(&a, medium_.at(0), 8);
      std::memcpy(&b, medium_.at(64), 8);
      generation_ = b;
      return a ^ b * 1000;
    }
    std::uint64_t first = 1;
    generation_ = 0;
    for (const std::uint64_t at : {std::uint64_t{0}, copy_b}) {
      std::array<std::uint64_t, 8> w;
      std::memcpy(w.data(), medium_.at(at), 64);
      if (w[7] != sum(w.data(), 7) || w[1] < generation_) continue;
      first = w[0];
      generation_ = w[1];
      newest_ = at;
    }
    return first;
  }

  medium::Medium& medium_;
  const Bug bug_;
  std::uint64_t first_ = 1, next_ = 1, generation_ = 0, newest_ = 0;
  Pairs pending_;
};

}  // namespace perdure::test
