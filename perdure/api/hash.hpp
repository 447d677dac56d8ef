// SPDX-License-Identifier: BSD-3-Clause
//
// hash<K>: the hash of a key, which determines the layout of a pool's structures.
//
// It is part of the pool format: a key hashes to the same value in every build, on every run
// (std::hash promises neither). Integers, enums and bool are hashed by value, widened to 64 bits;
// floating point by bits, with -0 taken as +0 and every NaN as one; text and plain structs without
// padding by their bytes. For any other type, specialise perdure::hash<K> and keep the same
// promise.
// Thread safety: pure functions.
// Source: base/checksum.hpp (Murmur3's finaliser for words, NH for bytes).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "perdure/base/checksum.hpp"

namespace perdure {

/// hash<K>::of(key) returns 64 bits, each of which depends on the whole key.
template <class K>
struct hash {
  /// Marks the hash of types for which none is specialised.
  using by_its_bytes = void;
  /// The key's hash, the same in every build and on every run.
  [[nodiscard]] static constexpr std::uint64_t of(const K& key) noexcept {
    if constexpr (std::is_enum_v<K>) {
      return hash<std::underlying_type_t<K>>::of(static_cast<std::underlying_type_t<K>>(key));
    } else if constexpr (std::is_integral_v<K> && sizeof(K) <= 8) {
      return base::mix(static_cast<std::uint64_t>(key));
    } else if constexpr (std::is_same_v<K, float> || std::is_same_v<K, double>) {
      using Bits = std::conditional_t<sizeof(K) == 4, std::uint32_t, std::uint64_t>;
      const K one = key == 0 ? K{0} : key != key ? std::numeric_limits<K>::quiet_NaN() : key;
      return base::mix(std::bit_cast<Bits>(one));
    } else if constexpr (std::is_pointer_v<K>) {
      // A pool pointer hashes by its address: the pool is mapped at its recorded base.
      return base::mix(reinterpret_cast<std::uintptr_t>(key));
    } else {
      static_assert(std::has_unique_object_representations_v<K>,
                    "perdure::hash<K>: K has padding or several representations of one value, so "
                    "its bytes are no hash; "
                    "specialise perdure::hash<K> with `static std::uint64_t of(const K&)`, the "
                    "same in every build");
      return base::hash_bytes(&key, sizeof key, 0);
    }
  }
};

/// The hash of a text: of its bytes.
template <>
struct hash<std::string_view> {
  /// The text's hash, the same in every build and on every run.
  [[nodiscard]] static std::uint64_t of(std::string_view key) noexcept {
    return base::hash_bytes(key.data(), key.size(), 0);
  }
};
/// The hash of a text: of its bytes.
template <>
struct hash<std::string> : hash<std::string_view> {};

}  // namespace perdure
