// SPDX-License-Identifier: BSD-3-Clause
//
// record: a struct that is a container's value: one heap block [shape u64][image ...].
//
// The shape is the hash of the struct's layout text, the same in every pool: it says how to read
// the image. A record keeps its address as long as its shape.
// Thread safety: that of the transaction. Errors: those of Tx, and std::bad_alloc; reading a record
// of another shape throws error(corrupt).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "perdure/value/access.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

struct record {
  std::uint64_t shape;

  [[nodiscard]] std::byte* image() noexcept {
    return reinterpret_cast<std::byte*>(this) + sizeof(record);
  }
  [[nodiscard]] const std::byte* image() const noexcept {
    return reinterpret_cast<const std::byte*>(this) + sizeof(record);
  }

  /// Makes the record of an object.
  [[nodiscard]] static record* make(Writer& tx, const Type& type, const void* object);
  /// Makes the record of an object in a block that begins with one word more. Returns the block.
  [[nodiscard]] static std::byte* make_behind(Writer& tx, std::uint64_t word, const Type& type,
                                              const void* object);
  /// Gives an object the record's value.
  static void read(Reader& tx, const Type& type, const record* from, void* object);
  /// Copies the image of one of its parts.
  static void read_part(Reader& tx, const Type& type, const record* from, const Part& part,
                        void* image);
  /// Makes a record that of an object; only bytes that differ are logged.
  static void assign(Writer& tx, const Type& type, record* to, const void* object);
  /// Frees the record and what it owns.
  static void drop(Writer& tx, const Type& type, record* block);
  /// Frees what the record owns, and not its block.
  static void drop_parts(Writer& tx, const Type& type, const record* from);
  /// Calls f(block) for each block that the record owns, and not for its own.
  static void each_part_block(Reader& tx, const Type& type, const record* from,
                              const std::function<void(const void*)>& f);
  /// Calls f(block) for the record and each block that it owns.
  static void each_block(Reader& tx, const Type& type, const record* block,
                         const std::function<void(const void*)>& f);
};
static_assert(sizeof(record) == 8);

}  // namespace perdure::value
