// SPDX-License-Identifier: BSD-3-Clause
//
// Type: how a C++ value lies in a pool, as data.
//
// A value has an image of a fixed size: numbers as they are, text and sequences as a pointer to a
// block that the value owns, the rest by composition. The functions of image.hpp and order.hpp walk
// a value, its image and its Type together, so they are compiled once and not once per type; what
// differs between C++ types of one kind (how a std::vector<E> is made larger) is in Operations.
// type_of.hpp makes the Type of a C++ type. A Type that was read from a pool's layout text has no
// Operations.
// Thread safety: a Type does not change after it was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/renamed.hpp"

namespace perdure::value {

class Reader;

/// What a value is made of.
enum class Kind : std::uint8_t {
  scalar,     ///< a number, enumerator, bool, time or pool pointer
  text,       ///< std::string
  sequence,   ///< std::vector
  optional,   ///< std::optional
  variant,    ///< std::variant
  array,      ///< std::array
  structure,  ///< a struct, std::pair or std::tuple
};

/// How the bytes of a scalar are compared, hashed and widened.
enum class Number : std::uint8_t {
  unsigned_integer,
  signed_integer,
  floating,
  opaque,  ///< bytes of a class that states its layout by name
};

struct Type;

/// A part of a value.
struct Part {
  std::string_view name;    ///< a field's name; empty in other kinds
  const Type* type;         ///< never null
  std::uint32_t at;         ///< in the image
  std::uint32_t in_object;  ///< in the C++ object; 0 where Operations lead to it
};

/// What the C++ types of one kind do differently.
struct Operations {
  /// A sequence's number of elements, an optional's (0 or 1), a variant's index (SIZE_MAX where it
  /// has no value).
  std::size_t (*count)(const void* object);
  /// A sequence's elements, an optional's value, a variant's value.
  const void* (*get)(const void* object);
  /// Makes a sequence have n elements, an optional have a value (n = 1) or none (0), a variant hold
  /// alternative n. Returns what get() returns. What was there is kept where it can be.
  void* (*make)(void* object, std::size_t n);
  /// A structure with an operator<: its order. Reads the value of an image; returns a negative
  /// value, zero or a positive value. Null elsewhere.
  int (*order)(Reader& reader, const Type& type, const std::byte* image, const void* object);
  /// A specialised perdure::hash of a structure or class. Null elsewhere.
  std::uint64_t (*hash)(const void* object);
};

/// How a value lies in a pool.
struct Type {
  Kind kind = Kind::structure;
  Number number = Number::unsigned_integer;  ///< of a scalar
  /// Whether there is text or a sequence in it, so that it owns heap blocks.
  bool owns = false;
  /// Whether it is ordered the other way round (reversed.hpp).
  bool reversed = false;
  /// Whether an object's bytes are its image, padding aside.
  bool plain = false;
  /// Whether its class has an operator<, which orders keys instead of its parts.
  bool own_order = false;
  /// Whether its class has a specialised perdure::hash, which hashes keys instead of its parts.
  bool own_hash = false;
  std::uint32_t size = 0;   ///< of the image; a multiple of `align`
  std::uint32_t align = 1;  ///< of the image: 1, 2, 4 or 8
  std::uint64_t count = 0;  ///< an array's number of elements
  std::uint64_t shape = 0;  ///< of a structure: shape_of(text_of(*this))
  /// sizeof the C++ type; 0 without one.
  std::size_t object_bytes = 0;
  std::string word = {};  ///< what stands for a scalar in a layout text: u64, enum:u8, time<1/1000>
  /// A structure's fields, a variant's alternatives; the one element type of a sequence, an
  /// optional or an array.
  std::vector<Part> parts = {};
  const Operations* operations = nullptr;
  /// A struct's perdure_renamed and perdure_removed.
  std::vector<perdure::renamed> renamed = {};
  std::vector<std::string_view> removed = {};

  /// The type of the elements of a sequence, an optional or an array.
  [[nodiscard]] const Type& element() const { return *parts.front().type; }
};

/// What a layout text says besides the layout of values.
enum class TextVersion : std::uint8_t {
  /// Nothing more: the text of records, from which shapes are made, and of pools without a catalog.
  plain,
  /// Also which classes have an order or a hash of their own, "less<hash<{...}8>>": the text of
  /// keys in a pool with a catalog. So a program that adds an order or a hash to a class has
  /// another text.
  marked,
};

/// The layout text of a value: "{token:string@0,user:u64@8,roles:vec<string>@16}24". It is a part
/// of the pool format (docs/format.md). Throws std::bad_alloc.
[[nodiscard]] std::string text_of(const Type& type, TextVersion version = TextVersion::plain);

/// The alignment that a class of this size has if its text states none: the largest power of
/// two, up to 8, that divides its size.
[[nodiscard]] constexpr std::uint32_t natural_align(std::uint32_t size) noexcept {
  const std::uint32_t bits = size | 8;
  return bits & (~bits + 1);
}

/// The hash of a layout text that a record carries.
[[nodiscard]] std::uint64_t shape_of(std::string_view text) noexcept;

}  // namespace perdure::value
