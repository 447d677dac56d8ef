// SPDX-License-Identifier: BSD-3-Clause
//
// Redo by one thread or several: payloads are applied to home, in id order, each page of home by
// one thread.
//
// Two entries that change the same word are applied by one thread, in order, so D1 (redo.hpp) holds
// word by word. Heap ops change the directory and bitmaps: all are the first thread's, and so are
// the first pages of chunks, where bitmaps lie (at one time; at another, data): there ops and words
// keep their order. Of the other pages a hash says whose they are, 64 neighbours together. Every
// thread reads every entry.
// Source: DudeTM (ASPLOS '17) 3.4 and 3.5 replay in one thread; partitioned redo (Mohan et al.,
// ARIES, TODS '92, section 12).
// Thread safety: a plain function; it starts and ends its own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "perdure/log/packed.hpp"
#include "perdure/log/redo.hpp"

namespace perdure::log {

inline constexpr std::size_t no_strange = ~std::size_t{0};

/// As many threads as are worth their start for so many bytes of log: 1 to 8.
[[nodiscard]] unsigned redo_threads(std::uint64_t log_bytes) noexcept;

/// Applies the payloads in their order. Without `masks` starts the write-back of what they changed,
/// too; the caller fences (of several threads each other than the caller's has fenced what it wrote
/// back). With `masks`, one a thread, lines are noted there, and write-back is the caller's. The
/// caller has a thread slot. Returns the index of a payload with an entry outside home (only damage
/// makes one; home is then as it may be), or no_strange. `passed`, called by the caller's thread,
/// is told how many it has gone through; the others are about as far. Throws std::bad_alloc.
std::size_t redo(medium::Medium& medium, std::uint64_t max_home_bytes,
                 std::span<const Payload> payloads, HomeWriter::Use use, unsigned threads,
                 const std::function<void(std::size_t)>& passed = {},
                 std::span<LineMasks> masks = {});

}  // namespace perdure::log
