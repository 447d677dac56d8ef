// SPDX-License-Identifier: BSD-3-Clause
//
// Directory: where in the data region each chunk's directory word lies, and which chunks hold
// directory words or checksums instead of objects. This is the only place that knows it.
//
// The chunks are divided into sections. A section begins with the directory words of its own
// chunks, and no span and no large object reaches from one section into the next.
//   - Section 0 is the chunks up to the limit at creation: [0, n), where n is that limit in chunks.
//     Its words begin behind the data region's first page.
//   - Section i + 1 is chunks [n * 2^i, n * 2^(i + 1)): each section doubles the pool. Its words
//     begin with its first chunk. So the places of all words follow from the limit at creation
//     alone, and a raised limit moves none of them, however often it is raised.
// In a pool with checksums of its pages (page_checksums.hpp) these take a run of chunks, wherever
// the header says: behind the words of section 0 in a pool that was made with them, otherwise at
// the end that the data region had. The run divides its section in two, of which the second begins
// with the run. Nothing reaches from one into the other, and the places of words are the same.
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

/// Bytes of the data region.
struct DataRange {
  std::uint64_t offset = 0, bytes = 0;
};

class Directory {
 public:
  /// Of a pool whose limit was never raised.
  // Implicit, since the limit alone describes such a pool.
  constexpr Directory(std::uint64_t max_data_bytes) noexcept  // NOLINT(google-explicit-constructor)
      : Directory(max_data_bytes, max_data_bytes) {}
  /// `first_max_bytes`: the limit at creation. `max_data_bytes`: the limit now.
  /// `checksums`: where checksums of pages lie, in bytes; nothing, where there are none.
  constexpr Directory(std::uint64_t first_max_bytes, std::uint64_t max_data_bytes,
                      DataRange checksums = {}) noexcept
      : first_section_(first_max_bytes / chunk_bytes),
        max_data_bytes_(max_data_bytes),
        words_end_((directory_offset + first_section_ * 8 + chunk_bytes - 1) / chunk_bytes),
        sums_(checksums.bytes == 0 ? none : checksums.offset / chunk_bytes),
        sums_end_(sums_ + checksums.bytes / chunk_bytes),
        divided_(sums_ == none ? none : whole_section_end(sums_)) {}
  /// Of the pool that has this header.
  // Implicit, since the header has all that it needs. If the limit was raised, max_data_bytes is
  // not read: growth in another thread may change it at the same time.
  Directory(const Header& h) noexcept  // NOLINT(google-explicit-constructor)
      : Directory(h.raised_max_bytes != 0 ? h.first_max_bytes : h.max_data_bytes,
                  h.raised_max_bytes != 0 ? h.raised_max_bytes : h.max_data_bytes,
                  {h.checksums_offset, h.checksums_bytes}) {}

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
    return sums_ == words_end_ ? sums_end_ : words_end_;
  }
  /// Whether the chunk holds directory words (or the first page, or checksums) instead of objects.
  /// The word of such a chunk is zero.
  [[nodiscard]] constexpr bool holds_words(std::uint64_t chunk) const noexcept {
    return chunk < first_object(chunk);
  }
  /// Whether the chunk holds checksums of pages.
  [[nodiscard]] constexpr bool holds_checksums(std::uint64_t chunk) const noexcept {
    return chunk >= sums_ && chunk < sums_end_;
  }
  /// The chunks that hold checksums, as bytes of the data region.
  [[nodiscard]] constexpr DataRange checksums() const noexcept {
    return sums_ == none ? DataRange{}
                         : DataRange{sums_ * chunk_bytes, (sums_end_ - sums_) * chunk_bytes};
  }
  /// The chunk whose directory word lies at this offset. REQUIRES: there is a directory word.
  [[nodiscard]] constexpr std::uint64_t chunk_of_word(std::uint64_t offset) const noexcept {
    const std::uint64_t holder = offset / chunk_bytes;
    if (holder < words_end_) return (offset - directory_offset) / 8;
    const std::uint64_t begin = section_begin(holder);
    return begin + (offset - begin * chunk_bytes) / 8;
  }
  /// The first chunk for objects in the section, or the part of one, of this chunk.
  [[nodiscard]] constexpr std::uint64_t first_object(std::uint64_t chunk) const noexcept {
    if (chunk >= sums_ && whole_section_end(chunk) == divided_) return sums_end_;
    if (chunk < first_section_) return words_end_;
    const std::uint64_t begin = section_begin(chunk);
    return begin + (begin * 8 + chunk_bytes - 1) / chunk_bytes;
  }
  /// The first chunk behind the section, or the part of one, of this chunk, or the limit if that is
  /// less.
  [[nodiscard]] constexpr std::uint64_t section_end(std::uint64_t chunk) const noexcept {
    const std::uint64_t end = whole_section_end(chunk);
    return chunk < sums_ && end == divided_ ? sums_ : std::min(end, chunks());
  }
  /// Calls f(from, to) for each run of chunks that hold directory words or checksums in a data
  /// region of `data_bytes`, lowest first.
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
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  [[nodiscard]] constexpr std::uint64_t whole_section_end(std::uint64_t chunk) const noexcept {
    return chunk < first_section_ ? first_section_ : section_begin(chunk) * 2;
  }
  // REQUIRES: the chunk is not in section 0. The section begins at first_section_ shifted left by
  // the difference of the bit widths of `chunk` and first_section_, or by one bit less.
  [[nodiscard]] constexpr std::uint64_t section_begin(std::uint64_t chunk) const noexcept {
    const std::uint64_t begin = first_section_
                                << (std::bit_width(chunk) - std::bit_width(first_section_));
    return begin <= chunk ? begin : begin / 2;
  }
  std::uint64_t first_section_, max_data_bytes_;
  std::uint64_t words_end_;        // the first chunk behind the words of section 0
  std::uint64_t sums_, sums_end_;  // the chunks that hold checksums
  std::uint64_t divided_;          // the end of the section that they divide
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
