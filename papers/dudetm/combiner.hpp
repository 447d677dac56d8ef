// SPDX-License-Identifier: BSD-3-Clause
//
// Combiner: DudeTM's log combination (section 3.3). Gathers the entries of consecutive transactions
// and keeps of each word the last value, in a hash table of home's lines; what is left is one
// record, applied as a whole.
//
// A combined record holds the heap ops of its transactions in their order, then the words, by
// address. Words and ops were interleaved; that may be changed because they touch different words:
// words lie in blocks, ops change the directory and bitmaps. But a chunk may be a span at one time
// and a large block's inside at another, and what is a bitmap then, data now. So
//   GROUP-1  a group never has both an op of a span and a word in that span's bitmap: such a
//            transaction begins the next group (commutes()).
// An op is never left out: each enforces its own time's directory (pool/heap_apply.hpp).
// Source: DudeTM (ASPLOS '17) 3.3, "Log Combination". By lines of eight words, where the paper has
// words: a look-up serves eight.
// Errors: add() throws std::bad_alloc; the object is then good for clear() alone.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "perdure/log/record.hpp"

namespace perdure::log {

class Combiner {
 public:
  /// `max_home_bytes`: the pool's, which says where spans begin.
  void configure(std::uint64_t max_home_bytes);

  /// Whether a transaction's entries may join what is here (GROUP-1). Damage is not looked for:
  /// they come from this process.
  [[nodiscard]] bool commutes(const std::uint64_t* payload, std::uint64_t words) const;
  /// The later transaction's values win. `commutes` comes before.
  void add(const std::uint64_t* payload, std::uint64_t words);
  /// A bound on what write() will put down, if one more transaction of `more` words comes.
  [[nodiscard]] std::uint64_t bound(std::uint64_t more = 0) const noexcept {
    const std::uint64_t by_lines = lines_.size() * most_a_line + ops_.size() * 2 + more,
                        as_they_came = came_ + more;
    return by_lines < as_they_came ? by_lines : as_they_came;
  }
  /// Words of payload that were added since clear().
  [[nodiscard]] std::uint64_t came() const noexcept { return came_; }
  [[nodiscard]] bool empty() const noexcept { return came_ == 0; }
  /// Puts what is here into a record. Throws as RecordWriter does.
  void write(RecordWriter& record);
  void clear() noexcept;

 private:
  // three runs of two words: each takes a key and a pad
  static constexpr std::uint64_t most_a_line = 12;
  struct Line {
    std::uint64_t line = 0;  ///< home offset / 64
    std::uint64_t mask = 0;  ///< which words there are
    std::uint64_t values[8] = {};
  };
  [[nodiscard]] std::size_t slot_of(std::uint64_t line) const noexcept;
  [[nodiscard]] bool has_line(std::uint64_t line) const noexcept {
    return index_[slot_of(line)] != 0;
  }
  Line& line_at(std::uint64_t line);
  void rehash(std::size_t slots);
  [[nodiscard]] bool in_bitmap(std::uint64_t line) const noexcept;
  [[nodiscard]] std::uint64_t span_of(const pool::HeapOp& op) const noexcept;

  std::uint64_t first_chunk_ = 0;
  std::vector<Line> lines_;  // in the order they came
  // by hash: 1 + a place in lines_, 0 where there is none; a power of two long, at most half full
  std::vector<std::uint32_t> index_;
  std::vector<pool::HeapOp> ops_;
  // home offset of each span that an op is about, sorted; the low bits: its bitmap's lines
  std::vector<std::uint64_t> spans_;
  std::vector<std::uint64_t> run_;  // write()'s
  std::uint64_t came_ = 0;
};

}  // namespace perdure::log
