// SPDX-License-Identifier: BSD-3-Clause
//
// Combiner: DudeTM's log combination (section 3.3). It gathers the entries of consecutive
// transactions and stores the last value of each word, in a hash table of the data region's lines.
// The result is one record, applied as a whole.
//
// A combined record holds the heap ops of its transactions in their order, then the words, by
// address. Words and ops were interleaved. Their order may be changed because they touch different
// words: words lie in blocks, ops change the directory and bitmaps. But a chunk may be a span at
// one time and part of a large block at another, so what was a bitmap may be data now. Therefore:
//   GROUP-1  A group never has both an op of a span and a word in that span's bitmap: such a
//            transaction begins the next group (commutes()).
// An op is never left out, because each makes the directory that its own time had
// (pool/heap_apply.hpp).
// Source: DudeTM (ASPLOS '17) 3.3, "Log Combination". The table has lines of eight words where the
// paper has words, so that one look-up serves eight.
// Errors: add() throws std::bad_alloc; afterwards only clear() may be called.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "papers/names.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/pool/directory.hpp"

namespace perdure::papers::dudetm {

class Combiner {
 public:
  /// `directory` is the pool's; it determines where spans begin.
  void configure(const pool::Directory& directory);

  /// Returns whether a transaction's entries may join the group (GROUP-1). The entries are not
  /// checked for damage, because they come from this process.
  [[nodiscard]] bool commutes(const std::uint64_t* payload, std::uint64_t words) const;
  /// Adds a transaction, whose values replace earlier ones. Precondition: commutes() is true.
  void add(const std::uint64_t* payload, std::uint64_t words);
  /// Returns an upper bound in words on what write() will write if one more transaction of `more`
  /// words is added.
  [[nodiscard]] std::uint64_t bound(std::uint64_t more = 0) const noexcept {
    const std::uint64_t by_lines = lines_.size() * max_a_line + ops_.size() * 2 + more,
                        uncombined = words_in_ + more;
    return by_lines < uncombined ? by_lines : uncombined;
  }
  /// Returns the number of payload words that were added since clear().
  [[nodiscard]] std::uint64_t words_in() const noexcept { return words_in_; }
  [[nodiscard]] bool empty() const noexcept { return words_in_ == 0; }
  /// Writes the group into a record. Throws as RecordWriter does.
  void write(RecordWriter& record);
  void clear() noexcept;

 private:
  // Three runs of two words, each with a key and padding.
  static constexpr std::uint64_t max_a_line = 12;
  struct Line {
    std::uint64_t line = 0;  ///< offset in the data region / 64
    std::uint64_t mask = 0;  ///< which words have a value
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
  std::vector<Line> lines_;  // in the order in which they were added
  // By hash: 1 + an index in lines_, or 0. Its length is a power of two, and it is at most half
  // full.
  std::vector<std::uint32_t> index_;
  std::vector<pool::HeapOp> ops_;
  // The offset in the data region of each span that an op concerns, sorted. The low bits have the
  // number of its bitmap's lines.
  std::vector<std::uint64_t> spans_;
  std::vector<std::uint64_t> run_;  // used by write()
  std::uint64_t words_in_ = 0;
};

}  // namespace perdure::papers::dudetm
