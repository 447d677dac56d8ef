// SPDX-License-Identifier: BSD-3-Clause
//
// record: a struct that is a container's value: one heap block [shape u64][image ...].
//
// The shape is the hash of the struct's layout text, the same in every pool: it says how to read
// the image. A record keeps its address as long as it keeps its shape.
//
// A record of another shape than the program's type was written by another version of the program.
// It is converted to the program's type when it is read (shapes.hpp, convert.hpp), and the first
// change replaces it by a new record. It is freed and walked by its own type.
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
  /// Makes the record of an object behind `word` in one block. Returns the block.
  [[nodiscard]] static std::byte* make_behind(Writer& tx, std::uint64_t word, const Type& type,
                                              const void* object);
  /// Reads the record into an object. REQUIRES: the object is value-initialised.
  static void read(Reader& tx, const Type& type, const record* from, void* object);
  /// As read(), but fields that need a step keep their initialiser's value, for the step to change.
  static void read_for_step(Reader& tx, const Type& type, const record* from, void* object);
  /// Whether the record has the type's shape, not an earlier one.
  [[nodiscard]] static bool is_of(Reader& tx, const Type& type, const record* from);
  /// Copies the image of one part of the record. Returns false, and copies nothing, if the record
  /// has an earlier shape: then read() it as a whole.
  [[nodiscard]] static bool read_part(Reader& tx, const Type& type, const record* from,
                                      const Part& part, void* image);
  /// Whether the record has this part of the type, with the same type: a record of an earlier shape
  /// may lack it, or have it with another type. The value of a part that the record has does not
  /// depend on initialisers in later versions.
  [[nodiscard]] static bool has_part(Reader& tx, const Type& type, const record* from,
                                     const Part& part);
  /// Gives the record an object's value; only bytes that differ are logged. Returns the record. If
  /// it had an earlier shape, that is a new record, and the old one is freed.
  [[nodiscard]] static record* assign(Writer& tx, const Type& type, record* to, const void* object);
  /// The same for a record behind a word in one block. Returns the block.
  [[nodiscard]] static std::byte* assign_behind(Writer& tx, const Type& type, std::byte* block,
                                                const void* object);
  /// Frees the record and what it owns.
  static void drop(Writer& tx, const Type& type, record* block);
  /// Frees what the record owns, and not its block.
  static void drop_parts(Writer& tx, const Type& type, const record* from);
  /// Frees up to `blocks` blocks that the record owns, and lowers `blocks` by their number
  /// (image.hpp). Returns whether only the record's own block is left.
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
