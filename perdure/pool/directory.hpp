// SPDX-License-Identifier: BSD-3-Clause
//
// Directory: where in the data region each chunk's directory word lies, and which chunks hold
// directory words instead of objects. This is the only place that knows it.
//
// The chunks are divided into sections. A section begins with the directory words of its own
// chunks, and no span and no large object reaches from one section into the next.
//   - Section 0 is the chunks up to the limit at creation: [0, n), where n is that limit in chunks.
//     Its words begin behind the data region's first page.
//   - Section i + 1 is chunks [n * 2^i, n * 2^(i + 1)): each section doubles the pool. Its words
//     begin with its first chunk. So the places of all words follow from the limit at creation
//     alone, and a raised limit moves none of them, however often it is raised.
// Crash invariants:
//   RAISE-1 the header that begins a session raises the limit: the raised limit, the limit at
//           creation and the feature `raised limit` are in one write of the header. The data region
//           grows beyond the old limit only afterwards, when both copies of the header have them.
//   RAISE-2 a section's directory is zero when the data region first includes it (the medium's
//           growth adds zeros), and after that only heap ops change it.
// So a process that is killed at any instant leaves the old limit or the new one, and the words of
// chunks that the pool does not have yet are never read.
// Thread safety: a value. The header fields that it is made from do not change during a session.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "perdure/pool/format.hpp"

namespace perdure::pool {

class Directory {
 public:
  /// Of a pool whose limit was never raised.
  // Implicit, since the limit alone describes such a pool.
  constexpr Directory(std::uint64_t max_data_bytes) noexcept  // NOLINT(google-explicit-constructor)
      : Directory(max_data_bytes, max_data_bytes) {}
  /// `first_max_bytes`: the limit at creation. `max_data_bytes`: the limit now.
  constexpr Directory(std::uint64_t first_max_bytes, std::uint64_t max_data_bytes) noexcept
      : first_section_(first_max_bytes / chunk_bytes), max_data_bytes_(max_data_bytes) {}
  /// Of the pool that has this header.
  // Implicit, since the header has all that it needs. If the limit was raised, max_data_bytes is
  // not read: growth in another thread may change it at the same time.
  Directory(const Header& h) noexcept  // NOLINT(google-explicit-constructor)
      : Directory(h.raised_max_bytes != 0 ? h.first_max_bytes : h.max_data_bytes,
                  h.raised_max_bytes != 0 ? h.raised_max_bytes : h.max_data_bytes) {}

  /// The largest length of the data region, in bytes.
  [[nodiscard]] constexpr std::uint64_t max_data_bytes() const noexcept { return max_data_bytes_; }
  /// The same in chunks.
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept {
    return max_data_bytes_ / chunk_bytes;
  }
  /// The offset of a chunk's directory word in the data region. The word lies before the end of its
  /// chunk, so if the data region has a chunk, it has the chunk's word.
  [[nodiscard]] constexpr std::uint64_t word(std::uint64_t chunk) const noexcept {
    if (chunk < first_section_) return directory_offset + chunk * 8;
    const std::uint64_t begin = section_begin(chunk);
    return begin * chunk_bytes + (chunk - begin) * 8;
  }
  /// The first chunk that can hold objects. Spans of n chunks lie at multiples of n from here.
  [[nodiscard]] constexpr std::uint64_t first_chunk() const noexcept {
    return (directory_offset + first_section_ * 8 + chunk_bytes - 1) / chunk_bytes;
  }
  /// Whether the chunk holds directory words (or the first page) instead of objects. The word of
  /// such a chunk is zero.
  [[nodiscard]] constexpr bool holds_words(std::uint64_t chunk) const noexcept {
    return chunk < first_object(chunk);
  }
  /// The first chunk for objects in the section of this chunk.
  [[nodiscard]] constexpr std::uint64_t first_object(std::uint64_t chunk) const noexcept {
    if (chunk < first_section_) return first_chunk();
    const std::uint64_t begin = section_begin(chunk);
    return begin + (begin * 8 + chunk_bytes - 1) / chunk_bytes;
  }
  /// The first chunk behind the section of this chunk, or the limit if that is less.
  [[nodiscard]] constexpr std::uint64_t section_end(std::uint64_t chunk) const noexcept {
    return std::min(chunk < first_section_ ? first_section_ : section_begin(chunk) * 2, chunks());
  }
  /// Calls f(from, to) for each run of chunks that hold directory words in a data region of
  /// `data_bytes`, lowest first.
  template <class F>
  void each_run_of_words(std::uint64_t data_bytes, F&& f) const {
    const std::uint64_t have = (data_bytes + chunk_bytes - 1) / chunk_bytes;
    for (std::uint64_t begin = 0; begin < have && begin < chunks(); begin = section_end(begin))
      f(begin, std::min(first_object(begin), have));
  }
  /// The length to which a data region of `data_bytes` must grow to get `count` more consecutive
  /// chunks for objects. It exceeds max_data_bytes() if there is no such length.
  [[nodiscard]] constexpr std::uint64_t length_with(std::uint64_t data_bytes,
                                                    std::uint64_t count) const noexcept {
    for (std::uint64_t at = data_bytes / chunk_bytes; at < chunks(); at = section_end(at)) {
      const std::uint64_t from = std::max(at, first_object(at));
      if (from + count <= section_end(at))
        return from * chunk_bytes + data_bytes % chunk_bytes + count * chunk_bytes;
    }
    return max_data_bytes() + count * chunk_bytes;  // no section has that many in a row
  }

 private:
  // REQUIRES: the chunk is not in section 0. The section begins at first_section_ shifted left by
  // the difference of the bit widths of `chunk` and first_section_, or by one bit less.
  [[nodiscard]] constexpr std::uint64_t section_begin(std::uint64_t chunk) const noexcept {
    const std::uint64_t begin = first_section_
                                << (std::bit_width(chunk) - std::bit_width(first_section_));
    return begin <= chunk ? begin : begin / 2;
  }
  std::uint64_t first_section_, max_data_bytes_;
};

/// The first chunk that can hold objects.
[[nodiscard]] constexpr std::uint64_t first_chunk(const Directory& directory) noexcept {
  return directory.first_chunk();
}

/// Sets the length of the data region, and the fields that depend on it, in a header that is not
/// yet written.
void set_data_bytes(Header& header, std::uint64_t data_bytes) noexcept;
/// The value that the header's max_data_bytes must have (docs/format.md, Raising the limit).
[[nodiscard]] std::uint64_t stated_max_bytes(const Header& header) noexcept;
/// Raises the limit in a header that is not yet written. REQUIRES: max_data_bytes is a multiple of
/// chunk_bytes, above the header's limit, and at most max_data_limit.
void raise_limit(Header& header, std::uint64_t max_data_bytes) noexcept;

}  // namespace perdure::pool
