// SPDX-License-Identifier: BSD-3-Clause
//
// WrapRecord: the entries of a wrap in its redo log (papers: SoftWrAP, MSST '15, Algorithm 3 and
// Table I): 12 bytes per word, streamed in whole cache lines, and 8 bytes that close it:
// ceil((12 n + 8) / 64) lines for n words.
//
//   entry   tag (4 bytes), value (8 bytes), packed: an entry may lie across two lines
//             1 ... 2^31      the word number tag - 1 of the segment of 16 GiB that the wrap is in
//                             (segment 0 to begin with)
//             segment         the value is the segment of what follows
//             alloc, free     a heap op: size class 8 bits; then a small block's offset / 16, or a
//                             large one's chunk (28 bits) and chunks
//             object          the value is a first word (40 bits) and a count (24 bits): as many
//                             words lie in the data region, durable before this wrap's close
//                             (SOFTWRAP-4, softwrap.hpp)
//             run             the value is a first word (40 bits) and a count (24 bits): as many
//                             8-byte values follow
//             0               no entry: 4 bytes of padding
//   check   the last 8 bytes before the close where 8 are free, 4 bytes where only 4 are, or none.
//           No entry is so short, so a reader recognises it by what is left
//   close   the last 8 bytes of the wrap's last line: lines 12 bits, id 20 bits (counted from the
//           bucket's base), sum 32 bits. Where one of the first two does not fit, the lines are 0,
//           and the 12 bytes before hold them: lines (4 bytes), id (8 bytes)
// Check and sum cover all of the wrap's lines, bound to pool, session, log and place
// (papers/softwrap/wrap_sum.hpp). A log of the first form (log/control_word.hpp) has no check:
// those bytes are 0.
// The paper's scalars are words of 4 bytes with an address of 8; here they are words of 8 bytes
// with an address of 4. The paper does not say how a wrap is closed.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <cstring>

#include "papers/names.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::papers::softwrap {

struct WrapRecord {
  static constexpr std::uint32_t segment = 0xfffffff1, alloc = 0xfffffff2, free = 0xfffffff3,
                                 run = 0xfffffff4, object = 0xfffffff5;
  static constexpr std::uint64_t entry_bytes = 12, check_bytes = 8, close_bytes = 8,
                                 long_close_bytes = 20;
  static constexpr unsigned segment_bits = 31;  ///< words
  static constexpr std::uint64_t max_in_run = (1 << 24) - 1;

  [[nodiscard]] static constexpr std::uint32_t tag_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word & ((std::uint64_t{1} << segment_bits) - 1)) + 1;
  }
  [[nodiscard]] static constexpr std::uint64_t value_of(const pool::HeapOp& op) noexcept {
    return op.cls == pool::large_class
               ? op.cls | op.offset / pool::chunk_bytes << 8 | std::uint64_t{op.chunks} << 36
               : op.cls | op.offset / 16 << 8;
  }
  [[nodiscard]] static constexpr pool::HeapOp heap_op(std::uint32_t tag,
                                                      std::uint64_t value) noexcept {
    pool::HeapOp op;
    op.set = tag == alloc;
    op.cls = static_cast<std::uint32_t>(value & 0xff);
    if (op.cls == pool::large_class) {
      op.offset = (value >> 8 & 0xfffffff) * pool::chunk_bytes;
      op.chunks = static_cast<std::uint32_t>(value >> 36);
    } else {
      op.offset = (value >> 8) * 16;
    }
    return op;
  }
};

/// The close of a wrap, as it is in the wrap's last line.
struct WrapClose {
  /// From these on a close is long.
  static constexpr std::uint64_t short_lines = 1 << 12, short_id = 1 << 20;
  std::uint64_t lines = 0, id = 0;  ///< id: counted from the base

  [[nodiscard]] constexpr bool is_long() const noexcept {
    return lines >= short_lines || id >= short_id;
  }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept {
    return is_long() ? 0 : lines | id << 12;
  }

  /// Reads a line's last bytes as a close, whether or not it is a wrap's last line.
  [[nodiscard]] static WrapClose of(const std::byte* line) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, line + 56, 8);
    if ((word & (short_lines - 1)) != 0)
      return {word & (short_lines - 1), word >> 12 & (short_id - 1)};
    WrapClose c;
    std::uint32_t lines = 0;
    std::memcpy(&lines, line + 44, 4);
    std::memcpy(&c.id, line + 48, 8);
    c.lines = lines;
    return c;
  }
};

}  // namespace perdure::papers::softwrap
