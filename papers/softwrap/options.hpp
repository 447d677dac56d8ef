// SPDX-License-Identifier: BSD-3-Clause
//
// What can be chosen for SoftWrAP when a pool is opened (Options::engine_options).
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::papers {

struct SoftwrapOptions {
  /// Entries of each of the two alias tables, 64 to 2^28; 0: 65536. It may differ at each opening.
  std::uint32_t alias_entries = 0;
  /// Bytes of an object's page there, a power of two from 512 to 2^20; 0: 1024.
  std::uint32_t alias_page_bytes = 0;
  /// In milliseconds. A transaction that has kept an alias table from being retired for this long
  /// delays new ones, and after the same time again it is aborted at its next call (`busy`). One
  /// that makes no call can't be aborted: after the same time again the other transactions continue
  /// without it, and get `busy` where they need a table that it uses. 0: never.
  std::uint32_t long_wrap_ms = 10'000;
  /// Global aliasing: the threshold, in entries of the active table, from which on it is retired;
  /// 0: an eighth of its entries, as in the paper. More than seven eighths count as seven, where a
  /// table is full.
  std::uint32_t retire_at = 0;
  /// Global aliasing. true: a wrap that opens while the active table is at its threshold waits
  /// until the other table is in the data region, as in the paper (section V-C.2). false: it goes
  /// on, up to seven eighths.
  bool wait_at_threshold = false;
  /// What the data region gets from aliases is stored past the cache, a word at a time (the paper's
  /// streaming from the alias table, sections IV-A and IV-D), instead of stored and written back.
  /// With local aliasing a wrap that has stored something then has one more fence.
  bool stream_home = false;

  static constexpr std::uint32_t min_page_bytes = 512, max_page_bytes = 1 << 20;

  /// Returns ok, or `invalid` for a value out of range.
  [[nodiscard]] Status check(const std::string& path) const {
    // 64: a single transaction of the library's own containers may need that many.
    constexpr std::uint32_t min_aliases = 64, max_aliases = 1 << 28;
    if (alias_entries != 0 && (alias_entries < min_aliases || alias_entries > max_aliases))
      return failure(Code::invalid, path,
                     "SoftwrapOptions::alias_entries " + std::to_string(alias_entries),
                     "64 to 2^28, or 0 for the engine's own",
                     "leave it 0; a table that is too small for a transaction grows by itself");
    if (alias_page_bytes != 0 &&
        (!std::has_single_bit(alias_page_bytes) || alias_page_bytes < min_page_bytes ||
         alias_page_bytes > max_page_bytes))
      return failure(Code::invalid, path,
                     "SoftwrapOptions::alias_page_bytes " + std::to_string(alias_page_bytes),
                     "a power of two from 512 to 2^20, or 0 for 1024", "leave it 0");
    return {};
  }
};

}  // namespace perdure::papers
