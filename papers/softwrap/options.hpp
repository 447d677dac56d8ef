// SPDX-License-Identifier: BSD-3-Clause
//
// What may be chosen of SoftWrAP when a pool is opened (Options::engine_options).
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::papers {

struct SoftwrapOptions {
  /// Entries of each of its two alias tables, 64 to 2^28; 0: 65536. May differ at each opening
  std::uint32_t alias_entries = 0;
  /// Bytes of an object's page there, a power of two from 512 to 2^20; 0: 1024
  std::uint32_t alias_page_bytes = 0;
  /// A transaction that has kept an alias table from being retired for so many milliseconds holds
  /// new ones back, and after as many again it is aborted at its next call (`busy`). One that makes
  /// no call can't be aborted: after as many again the others go on without it, and get `busy`
  /// where they need a table that it keeps. 0: never
  std::uint32_t long_wrap_ms = 10'000;

  static constexpr std::uint32_t least_page_bytes = 512, most_page_bytes = 1 << 20;

  /// `invalid` names what is out of range.
  [[nodiscard]] Status check(const std::string& path) const {
    // 64: what one transaction of the library's own containers may need
    constexpr std::uint32_t least_aliases = 64, most_aliases = 1 << 28;
    if (alias_entries != 0 && (alias_entries < least_aliases || alias_entries > most_aliases))
      return failure(Code::invalid, path,
                     "SoftwrapOptions::alias_entries " + std::to_string(alias_entries),
                     "64 to 2^28, or 0 for the engine's own",
                     "leave it 0; a table that is too small for a transaction grows by itself");
    if (alias_page_bytes != 0 &&
        (!std::has_single_bit(alias_page_bytes) || alias_page_bytes < least_page_bytes ||
         alias_page_bytes > most_page_bytes))
      return failure(Code::invalid, path,
                     "SoftwrapOptions::alias_page_bytes " + std::to_string(alias_page_bytes),
                     "a power of two from 512 to 2^20, or 0 for 1024", "leave it 0");
    return {};
  }
};

}  // namespace perdure::papers
