// SPDX-License-Identifier: BSD-3-Clause
//
// The order, the equality and the hash of values that are keys.
//
// A struct that has an operator< is ordered by it; that reads all of it, so a struct of text is
// faster without one. Everything else is compared part by part in order of declaration: numbers by
// value, text byte by byte, a sequence that begins another one is less, nothing is less than an
// optional's value, and a variant's index comes before its value.
// The hash is a part of the pool format: it is the same in every build.
// Thread safety: that of the transaction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/value/access.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

/// Whether a number is less than another one, in a total order: NaN is equal to NaN, and above all
/// others.
template <class F>
[[nodiscard]] constexpr bool number_less(F a, F b) noexcept {
  return a < b || (b != b && a == a);
}

/// Returns a negative value, zero or a positive value: the image is less than, equal to or greater
/// than the object.
[[nodiscard]] int compare(Reader& tx, const Type& type, const std::byte* image, const void* object);

/// Whether two objects are equal, part by part.
[[nodiscard]] bool same(const Type& type, const void* a, const void* b);

/// The hash of an object, made of those of its parts.
[[nodiscard]] std::uint64_t hash_of(const Type& type, const void* object);

}  // namespace perdure::value
