// SPDX-License-Identifier: BSD-3-Clause
//
// string: text (any bytes) in a pool, 8 bytes in its owner: a pointer to one length-prefixed block
// (text_block.hpp), null when empty.
//
// assign() rewrites in place when the text fits, and logs only the bytes that change; append() logs
// the new bytes, and the whole text when the block has to double.
// Thread safety: that of the transaction. Zero bytes are the empty string.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/stored.hpp"
#include "perdure/value/text_block.hpp"

namespace perdure {

/// Text (any bytes) in a pool; 8 bytes in its owner.
///
/// Each call takes the transaction first. Calls that change the text need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's.
class string {
 public:
  /// The number of bytes.
  template <class Tx>
  [[nodiscard]] std::size_t size(Tx& tx) const {
    return text_block::length(tx, tx.read(block_));
  }
  /// Whether the text has no byte.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return size(tx) == 0;
  }
  /// Returns a copy of the text.
  template <class Tx>
  [[nodiscard]] std::string str(Tx& tx) const {
    return text_block::read(tx, tx.read(block_));
  }

  /// Returns at most `n` bytes from `first` on.
  template <class Tx>
  [[nodiscard]] std::string substr(Tx& tx, std::size_t first,
                                   std::size_t n = std::string::npos) const {
    const text_block* block = tx.read(block_);
    const std::size_t all = text_block::length(tx, block);
    if (first > all) {
      throw error(Status(Code::invalid, "perdure::string: found position " + std::to_string(first) +
                                            ", expected at most the size, " + std::to_string(all)));
    }
    std::string out(std::min(n, all - first), '\0');
    if (!out.empty()) tx.read_bytes(out.data(), block->bytes() + first, out.size());
    return out;
  }

  /// Returns a negative value, zero or a positive value: this text is below, equal to or above
  /// `text`, byte by byte.
  template <class Tx>
  [[nodiscard]] int compare(Tx& tx, std::string_view text) const {
    return text_block::compare(tx, tx.read(block_), text);
  }
  /// Whether this text is `text`, byte by byte.
  template <class Tx>
  [[nodiscard]] bool equals(Tx& tx, std::string_view text) const {
    return size(tx) == text.size() && compare(tx, text) == 0;
  }

  /// Replaces the text. Logs only the words that change where it fits into its block.
  template <class Tx>
  void assign(Tx& tx, std::string_view text) {
    detail::require_update<Tx>();
    text_block::assign(tx, block_, text);
  }
  /// Adds `text` at the end.
  template <class Tx>
  void append(Tx& tx, std::string_view text) {
    detail::require_update<Tx>();
    text_block::append(tx, block_, text);
  }
  /// Allocates space for a text of `n` bytes.
  template <class Tx>
  void reserve(Tx& tx, std::size_t n) {
    detail::require_update<Tx>();
    text_block::reserve(tx, block_, n);
  }
  /// Makes the text empty and frees its block.
  template <class Tx>
  void clear(Tx& tx) {
    assign(tx, {});
  }

  /// Frees up to `blocks` heap blocks of what the string owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the string. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    return detail::stored_text::free_some(tx, block_, blocks);
  }

  /// Calls f(const void*) for the heap block that holds the text, if there is one, for
  /// Pool::check().
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    if (const text_block* block = tx.read(block_)) f(static_cast<const void*>(block));
  }
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    return text_block::audit(tx, tx.read(block_));
  }

  /// What stands for a string in the layout text of a root (layout.hpp).
  static std::string layout_text() { return "string/1"; }

 private:
  ptr<text_block> block_;
};

}  // namespace perdure
