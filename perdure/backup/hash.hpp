// SPDX-License-Identifier: BSD-3-Clause
//
// Hash: 128 bits of XXH3, by which the files of an archive are checked, chained and named
// (docs/format.md, "The archive"). It finds accidents; it is no protection against someone who
// makes two contents with one hash.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>

namespace perdure::backup {

struct Hash {
  std::uint64_t low = 0, high = 0;
  friend constexpr bool operator==(const Hash&, const Hash&) noexcept = default;
  /// 32 hexadecimal digits, the highest first.
  [[nodiscard]] std::string text() const;
};

/// The hash of n bytes.
[[nodiscard]] Hash hash_of(const void* bytes, std::uint64_t n) noexcept;
/// The hash of three pieces, one after another.
[[nodiscard]] Hash hash_of(const void* a, std::uint64_t na, const void* b, std::uint64_t nb,
                           const void* c, std::uint64_t nc);

}  // namespace perdure::backup
