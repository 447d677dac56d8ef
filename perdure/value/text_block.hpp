// SPDX-License-Identifier: BSD-3-Clause
//
// text_block: a string in a pool: [length u32][capacity u32][bytes ...], one heap block; the empty
// string is a null pointer.
//
// Bytes between length and capacity are undefined. Rewriting logs only the bytes that change,
// appending only the new ones.
// Thread safety: that of the transaction. Crash invariants: none of its own; all writes go through
// the transaction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/persistent.hpp"

namespace perdure {

struct text_block {
  p<std::uint32_t> length_;
  p<std::uint32_t> capacity_;

  static constexpr std::size_t header = 8;
  /// Text is compared and copied through a buffer of this size.
  static constexpr std::size_t piece = 512;
  static constexpr std::size_t longest = 0xffffffffULL - 64;

  [[nodiscard]] std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this) + header; }
  [[nodiscard]] const std::byte* bytes() const noexcept {
    return reinterpret_cast<const std::byte*>(this) + header;
  }

  /// Makes a new block for at least `capacity` bytes (all that its heap block has) that holds
  /// `text`; null for an empty text and a capacity of 0.
  template <class Tx>
  static text_block* make(Tx& tx, std::string_view text, std::size_t capacity = 0) {
    capacity = std::max(capacity, text.size());
    if (capacity == 0) return nullptr;
    const std::size_t size = block_size(capacity);
    struct {
      std::uint32_t head[2];
      char text[piece - header];
    } image;
    image.head[0] = static_cast<std::uint32_t>(text.size());
    image.head[1] = static_cast<std::uint32_t>(size - header);
    auto* block = reinterpret_cast<text_block*>(tx.alloc(size));
    const std::size_t first = std::min(text.size(), sizeof image.text);
    text.copy(image.text, first);
    tx.write_bytes(block, &image, header + first);
    if (first < text.size())
      tx.write_bytes(block->bytes() + first, text.data() + first, text.size() - first);
    return block;
  }

  template <class Tx>
  static std::size_t length(Tx& tx, const text_block* block) {
    return block == nullptr ? 0 : tx.read(block->length_);
  }

  template <class Tx>
  static std::string read(Tx& tx, const text_block* block) {
    const std::size_t n = length(tx, block);
    if constexpr (requires { tx.expect(block, n); })
      if (n > piece) tx.expect(block->bytes(), n);
    std::string out(n, '\0');
    if (n != 0) tx.read_bytes(out.data(), block->bytes(), n);
    return out;
  }

  /// Compares as memcmp does over both texts; of a text and its prefix, the prefix is first.
  template <class Tx>
  static int compare(Tx& tx, const text_block* block, std::string_view text) {
    const std::size_t mine = length(tx, block), common = std::min(mine, text.size());
    char buffer[piece];
    // The first comparison is short, because most texts differ there.
    for (std::size_t at = 0, step = 32; at < common; at += step, step = piece) {
      const std::size_t n = std::min(step, common - at);
      tx.read_bytes(buffer, block->bytes() + at, n);
      if (const int order = std::memcmp(buffer, text.data() + at, n); order != 0) return order;
    }
    return mine < text.size() ? -1 : mine > text.size() ? 1 : 0;
  }

  /// Makes `where` hold `text`: in place when it fits without waste, otherwise in a new block.
  template <class Tx>
  static void assign(Tx& tx, ptr<text_block>& where, std::string_view text) {
    text_block* const old = tx.read(where);
    text_block* const now = rewrite(tx, old, text);
    if (now == old) return;
    tx.write(where, now);
    if (old != nullptr) tx.free(old);
  }

  /// Makes `block`, which may be null, hold `text` if it fits without waste. Returns the block that
  /// holds it: `block`, or a new one (null for an empty text), and then the old one is the caller's
  /// to free.
  template <class Tx>
  [[nodiscard]] static text_block* rewrite(Tx& tx, text_block* block, std::string_view text) {
    const std::size_t room = block == nullptr ? 0 : tx.read(block->capacity_);
    if (text.size() > room || text.empty() || room > 2 * text.size() + 64) return make(tx, text);
    const std::size_t old = tx.read(block->length_), common = std::min(old, text.size());
    for (std::size_t at = 0; at < common; at += piece)
      write_changes(tx, block->bytes() + at, text.substr(at, std::min(piece, common - at)));
    if (common < text.size())
      tx.write_bytes(block->bytes() + common, text.data() + common, text.size() - common);
    if (old != text.size()) tx.write(block->length_, static_cast<std::uint32_t>(text.size()));
    return block;
  }

  /// Appends `text`; a full block is copied to one of twice its size.
  template <class Tx>
  static void append(Tx& tx, ptr<text_block>& where, std::string_view text) {
    if (text.empty()) return;
    const std::size_t old = length(tx, tx.read(where)), all = old + text.size();
    reserve(tx, where, all, std::min(2 * old, longest));
    text_block* block = tx.read(where);
    tx.write_bytes(block->bytes() + old, text.data(), text.size());
    tx.write(block->length_, static_cast<std::uint32_t>(all));
  }

  /// Makes the capacity at least `capacity` bytes and keeps the text; a block that has to be made
  /// gets a capacity of `wish`.
  template <class Tx>
  static void reserve(Tx& tx, ptr<text_block>& where, std::size_t capacity, std::size_t wish = 0) {
    text_block* old = tx.read(where);
    if (capacity == 0 || (old != nullptr && tx.read(old->capacity_) >= capacity)) return;
    text_block* block = make(tx, {}, std::max(capacity, wish));
    tx.write(where, block);
    if (old == nullptr) return;
    const std::size_t n = tx.read(old->length_);
    char buffer[piece];
    for (std::size_t at = 0; at < n; at += piece) {
      const std::size_t part = std::min(piece, n - at);
      tx.read_bytes(buffer, old->bytes() + at, part);
      tx.write_bytes(block->bytes() + at, buffer, part);
    }
    tx.write(block->length_, static_cast<std::uint32_t>(n));
    tx.free(old);
  }

  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  static std::vector<std::string> audit(Tx& tx, const text_block* block) {
    if (block == nullptr) return {};
    const std::size_t n = tx.read(block->length_), room = tx.read(block->capacity_);
    if (n <= room && (header + room) % 16 == 0) return {};
    return {"text of " + std::to_string(n) + " bytes in a block that holds " +
            std::to_string(room)};
  }

 private:
  static std::size_t block_size(std::size_t capacity) {
    if (capacity > longest) {
      throw error(Status(Code::too_big, "perdure: found a text of " + std::to_string(capacity) +
                                            " bytes, expected at most " + std::to_string(longest) +
                                            "; split it"));
    }
    return (header + capacity + 15) & ~std::size_t{15};
  }

  template <class Tx>
  static void write_changes(Tx& tx, std::byte* where, std::string_view text) {
    char old[piece];
    tx.read_bytes(old, where, text.size());
    std::size_t first = 0, last = text.size();
    while (first < last && old[first] == text[first]) ++first;
    while (last > first && old[last - 1] == text[last - 1]) --last;
    if (first < last) tx.write_bytes(where + first, text.data() + first, last - first);
  }
};
static_assert(sizeof(text_block) == text_block::header);

}  // namespace perdure
