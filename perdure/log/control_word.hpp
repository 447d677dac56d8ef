// SPDX-License-Identifier: BSD-3-Clause
//
// ControlWord: a word that tells how to read a log: 48 bits, and a checksum of 16 that is bound to pool, log and the word's own place in the log's line of
// control. A word is never torn (M1): a crash leaves the old one or the new one, so one that fails its checksum is damage (law L10).
// Thread safety: values.
#pragma once

#include <cstdint>

#include "perdure/base/checksum.hpp"

namespace perdure::log {

struct ControlWord {
  static constexpr std::uint64_t limit = std::uint64_t{1} << 48;
  /// `identity`: of pool and log. `value` below `limit`.
  [[nodiscard]] static std::uint64_t make(std::uint64_t identity, std::uint64_t place, std::uint64_t value) noexcept {
    base::Fold fold(identity);
    fold.add(value, place + 1);
    return value | fold.value() >> 48 << 48;
  }
  [[nodiscard]] static constexpr std::uint64_t value(std::uint64_t word) noexcept { return word << 16 >> 16; }
  [[nodiscard]] static bool whole(std::uint64_t identity, std::uint64_t place, std::uint64_t word) noexcept {
    return word == make(identity, place, value(word));
  }
};

}  // namespace perdure::log
