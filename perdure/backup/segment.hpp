// SPDX-License-Identifier: BSD-3-Clause
//
// Segment: a file of the archive with some frames of a pool's history. docs/format.md has the
// layout.
// Thread safety: functions over their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/backup/frame.hpp"
#include "perdure/backup/hash.hpp"
#include "perdure/backup/store.hpp"
#include "perdure/base/status.hpp"

namespace perdure::backup {

/// The 20 digits of a number in the names of an archive's files, so that names are in its order.
[[nodiscard]] std::string digits_of(std::uint64_t n);
/// Takes such digits off the front of `text`. Returns false, with `text` as it was, if it does not
/// begin with them.
[[nodiscard]] bool take_digits(std::string_view& text, std::uint64_t& n);

/// What a segment's name says. Numbers rise by one from segment to segment, so a missing one shows.
struct SegmentName {
  std::uint64_t number = 0;
  std::uint64_t before = 0, last = 0;  ///< it covers the ids above `before`, up to `last`
  [[nodiscard]] std::string text() const;
};
/// Returns what the name says; none for a name that is no segment's.
[[nodiscard]] std::optional<SegmentName> parse_segment_name(std::string_view name);
/// What all segments' names begin with.
inline constexpr std::string_view segment_prefix = "log-";
/// What the names of a store's segments say, by rising numbers.
Result<std::vector<SegmentName>> list_segments(Store& store);

/// A segment's first 80 bytes; its frames follow, and the hash of all that.
struct SegmentHeader {
  char magic[4];
  std::uint32_t version;
  std::uint8_t uuid[16];
  std::uint64_t before, last;
  Hash chain_before;      ///< the chain that its first frame continues; zeros: none
  std::uint64_t unix_ns;  ///< not later than its first frame's
  std::uint64_t number;   ///< as in its name
  std::uint64_t run;      ///< the id from which on nothing is missing
};
static_assert(sizeof(SegmentHeader) == 80);

/// The whole segment of that name, in the run that began after id `run`: `frames` continue the
/// history at `begin`.
[[nodiscard]] std::vector<std::byte> make_segment(const SegmentName& name, std::uint64_t run,
                                                  const std::uint8_t (&uuid)[16],
                                                  const HistoryEnd& begin,
                                                  const std::vector<std::byte>& frames);

/// A segment that was read.
struct Segment {
  SegmentName name;
  SegmentHeader header{};
  std::vector<std::byte> bytes;  ///< all of it
  [[nodiscard]] const std::byte* frames() const noexcept {
    return bytes.data() + sizeof(SegmentHeader);
  }
  [[nodiscard]] std::uint64_t frames_bytes() const noexcept {
    return bytes.size() - sizeof(SegmentHeader) - sizeof(Hash);
  }
  /// Where the history was that its frames continue.
  [[nodiscard]] HistoryEnd begin() const noexcept {
    return {header.before, header.unix_ns, header.chain_before};
  }
};
/// Checks the bytes of a segment of that name. Returns `corrupt` or `incompatible`, with `where`
/// (the archive's name) in the message.
Result<Segment> read_segment(const SegmentName& name, std::vector<std::byte> bytes,
                             const std::string& where);

}  // namespace perdure::backup
