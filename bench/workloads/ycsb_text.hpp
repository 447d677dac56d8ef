// SPDX-License-Identifier: BSD-3-Clause
//
// The content of a field as YCSB's client makes it: 100 random characters (its RandomByteIterator,
// which draws six characters from 30 random bits: of the codes above the space every bit set of 31,
// 63 and 95 in turn). A field has 104 bytes here: the last four are the number from which the
// characters were drawn, so that an audit can draw them again.
// Thread safety: plain functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "bench/harness/rng.hpp"
#include "bench/workloads/dude_session.hpp"

namespace bench {

inline constexpr std::uint64_t text_characters = 100;
static_assert(text_characters + sizeof(std::uint32_t) == sizeof(FieldText));

inline FieldText random_text(std::uint64_t key, std::uint64_t field, std::uint32_t seed) noexcept {
  constexpr std::uint32_t masks[] = {31, 63, 95};
  char bytes[sizeof(FieldText)];
  Rng rng(key * 16 + field, seed);
  std::uint64_t bits = 0;
  for (std::uint64_t i = 0; i < text_characters; ++i, bits >>= 5) {
    if (i % 6 == 0) bits = rng() & 0x3fffffff;
    bytes[i] = static_cast<char>((bits & masks[i % 3]) + ' ');
  }
  std::memcpy(bytes + text_characters, &seed, sizeof seed);
  FieldText text;
  std::memcpy(&text, bytes, sizeof text);
  return text;
}
inline bool is_random_text(const FieldText& text, std::uint64_t key, std::uint64_t field) noexcept {
  const auto seed = static_cast<std::uint32_t>(text.back() >> 32);
  return text == random_text(key, field, seed);
}

}  // namespace bench
