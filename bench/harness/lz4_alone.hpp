// SPDX-License-Identifier: BSD-3-Clause
//
// What lz4 alone would make of DudeTM's combined log records (DudeTM, ASPLOS '17, section 3.3).
// The log itself is compressed behind a filter (perdure/log/packed.hpp); this compresses the same
// payloads a second time without it, and counts the bytes.
// Thread safety: both may be called by several threads.
#pragma once

#include <cstdint>

namespace bench {

/// Compresses a payload, and adds the length that its record's payload would have: as pack() counts
/// it, with a word for the lengths, or the payload's own where lz4 saves nothing.
void count_lz4_alone(const std::uint64_t* payload, std::uint64_t words);
/// The sum of these lengths, in bytes.
[[nodiscard]] std::uint64_t lz4_alone_bytes() noexcept;

}  // namespace bench
