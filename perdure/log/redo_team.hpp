// SPDX-License-Identifier: BSD-3-Clause
//
// Redo by one or several threads: payloads are applied to the data region in id order, and each
// page of it is changed by one thread.
//
// Two entries that change the same word are applied by one thread, in order, so REDO-1 (redo.hpp)
// holds word by word. Heap ops change the directory and bitmaps. The first thread applies all of
// them, and all words in the first pages of chunks, where bitmaps lie (the same bytes may hold data
// at another time): there ops and words keep their order. A hash gives each group of 64
// neighbouring other pages its owner. Every thread reads every entry.
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

/// Returns how many threads pay for their start with `log_bytes` bytes of log: 1 to 8.
[[nodiscard]] unsigned redo_threads(std::uint64_t log_bytes) noexcept;

/// Applies the payloads in their order. Without `masks` it also starts the write-back of what they
/// changed, and the caller fences (each thread other than the caller's has fenced what it wrote
/// back). With `masks`, one per thread, lines are noted there and the caller writes them back. The
/// caller has a thread slot. Returns the index of a payload with an entry outside the data region
/// (only damage makes one; the state of the data region is then undefined), or no_strange. The
/// caller's thread calls `passed` with the number of payloads it has finished; the other threads
/// are about as far. Throws std::bad_alloc.
std::size_t redo(medium::Medium& medium, std::uint64_t max_data_bytes,
                 std::span<const Payload> payloads, DataWriter::Use use, unsigned threads,
                 const std::function<void(std::size_t)>& passed = {},
                 std::span<LineMasks> masks = {});

}  // namespace perdure::log
