// SPDX-License-Identifier: BSD-3-Clause
//
// sequence: the block of a std::vector in a pool: [count u32][capacity u32][images ...]. An empty
// vector is a null pointer.
//
// Images lie at a stride of their size. Bytes behind the last image are undefined. Changing one
// element logs what differs in it; appending logs the new elements and the count.
// Thread safety: that of the transaction. Errors: those of Tx, and std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "perdure/value/access.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

struct sequence {
  std::uint32_t count;
  std::uint32_t capacity;

  /// The most bytes of a block.
  static constexpr std::size_t longest = 0xffffffffULL - 64;
  /// A value may hold sequences in sequences up to this depth: check() and drop() enter them by
  /// recursion.
  static constexpr unsigned deepest = 100;

  [[nodiscard]] std::byte* images() noexcept {
    return reinterpret_cast<std::byte*>(this) + sizeof(sequence);
  }
  [[nodiscard]] const std::byte* images() const noexcept {
    return reinterpret_cast<const std::byte*>(this) + sizeof(sequence);
  }

  /// The header of a block; zeros for null.
  [[nodiscard]] static sequence header(Reader& tx, const sequence* block);

  /// Makes a block for `n` elements; null for none. Throws error(too_big), also for elements that
  /// are nested deeper than `deepest`.
  [[nodiscard]] static sequence* make(Writer& tx, const Type& element, const void* objects,
                                      std::size_t n);
  /// Makes a block hold the elements: in place when they fit without waste, otherwise in a new one;
  /// the old one is freed then. Returns the block.
  [[nodiscard]] static sequence* change(Writer& tx, const Type& element, sequence* block,
                                        const void* objects, std::size_t n);
  /// Frees the block and what its elements own.
  static void drop(Writer& tx, const Type& element, sequence* block);
  /// Frees up to `blocks` blocks that the sequence's elements own, beginning at its end, and lowers
  /// `blocks` by their number. Afterwards the sequence's count is the number of elements that may
  /// still own blocks. Returns whether none does.
  static bool free_elements(Writer& tx, const Type& element, sequence* block,
                            std::uint64_t& blocks);
  /// Makes a copy whose elements own blocks of their own.
  [[nodiscard]] static sequence* copy(Writer& tx, const Type& element, const sequence* block);
  /// Calls f(image) for each element's image, copied to DRAM, in order. A result of false ends the
  /// walk.
  static void each_image(Reader& tx, const Type& element, const sequence* block,
                         const std::function<bool(const std::byte*)>& f);
};
static_assert(sizeof(sequence) == 8);

}  // namespace perdure::value
