// SPDX-License-Identifier: BSD-3-Clause
//
// record: a struct that is a container's value: one heap block [shape u64][image ...].
//
// The shape is the hash of the struct's layout text, the same in every pool: it says how to read
// the image. A record keeps its address as long as its shape.
//
// A record of another shape than the program's type was written by another version of the program.
// It is read by what changed between the two (shapes.hpp, convert.hpp), and a change makes a new
// record of it; it is dropped and walked by its own type.
// Thread safety: that of the transaction. Errors: those of Tx, and std::bad_alloc; a record of an
// unknown shape throws error(corrupt), and one that needs a step, or would lose a field,
// error(incompatible).
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
  /// Gives an object, which is value-initialised, the record's value.
  static void read(Reader& tx, const Type& type, const record* from, void* object);
  /// As read(), and fields that need a step keep their initialiser's value, for the step to change.
  static void read_for_step(Reader& tx, const Type& type, const record* from, void* object);
  /// Whether the record has the type's shape, and no earlier one.
  [[nodiscard]] static bool is_of(Reader& tx, const Type& type, const record* from);
  /// Copies the image of one of its parts. Returns false, and copies nothing, if the record has an
  /// earlier shape: it has to be read as a whole.
  [[nodiscard]] static bool read_part(Reader& tx, const Type& type, const record* from,
                                      const Part& part, void* image);
  /// Whether one of its parts is in the record as it is in the type: not so if the record has an
  /// earlier shape without it, or with another type of it. Its value can't change then by what a
  /// later version says of new fields.
  [[nodiscard]] static bool has_part(Reader& tx, const Type& type, const record* from,
                                     const Part& part);
  /// Makes a record that of an object; only bytes that differ are logged. Returns the record: a new
  /// one, and the old one is freed, if it had an earlier shape.
  [[nodiscard]] static record* assign(Writer& tx, const Type& type, record* to, const void* object);
  /// The same of a record in a block that begins with one word more. Returns the block.
  [[nodiscard]] static std::byte* assign_behind(Writer& tx, const Type& type, std::byte* block,
                                                const void* object);
  /// Frees the record and what it owns.
  static void drop(Writer& tx, const Type& type, record* block);
  /// Frees what the record owns, and not its block.
  static void drop_parts(Writer& tx, const Type& type, const record* from);
  /// Frees up to `blocks` blocks of what the record owns, and lowers `blocks` by their number
  /// (image.hpp). Returns whether its own block alone is left.
  [[nodiscard]] static bool free_parts(Writer& tx, const Type& type, record* block,
                                       std::uint64_t& blocks);
  /// Calls f(block) for each block that the record owns, and not for its own.
  static void each_part_block(Reader& tx, const Type& type, const record* from,
                              const std::function<void(const void*)>& f);
  /// Calls f(block) for the record and each block that it owns.
  static void each_block(Reader& tx, const Type& type, const record* block,
                         const std::function<void(const void*)>& f);
};
static_assert(sizeof(record) == 8);

}  // namespace perdure::value
