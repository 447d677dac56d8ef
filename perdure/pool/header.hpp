// SPDX-License-Identifier: BSD-3-Clause
//
// The pool's header: reading its two copies, judging them, choosing one, writing both.
//
// Everything here is a plain function. Reading never writes. Each way in which a file can fail to
// be a usable pool has a reason of its own: not a pool, newer version, other endianness, truncated,
// both copies damaged, other engine, other layout. write_header preserves crash invariant HEADER-1
// (format.hpp). Thread safety: none is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/format.hpp"

namespace perdure::pool {

struct Identity;

/// The verdict on one copy.
enum class CopyState : std::uint8_t {
  valid,
  missing,        ///< the file ends before it
  foreign,        ///< no magic
  other_endian,   ///< made on a machine of the other byte order
  other_version,  ///< of a format version that this build doesn't know
  damaged,        ///< its checksum does not match
  impossible      ///< its checksum matches, but its numbers contradict each other
};
[[nodiscard]] CopyState judge(const Header& copy, std::string* why_impossible = nullptr);
[[nodiscard]] std::uint64_t header_checksum(const Header& header) noexcept;

/// The header that the opening relies on.
struct ChosenHeader {
  Header header{};
  CopyState copy_a = CopyState::missing, copy_b = CopyState::missing;
  /// HEADER-1: copy A is the newest whole one, so the next write begins with B.
  bool write_b_first = false;
};

/// Chooses between the copies found at header_a and header_b (`null`: the file ends before the
/// copy).
Result<ChosenHeader> choose_header(const std::string& path, const Header* a, const Header* b,
                                   std::uint64_t file_bytes);

/// Reads the header of an open file or /dev/dax device and checks it against the file's length.
Result<ChosenHeader> read_header(const std::string& path, int fd);

/// The same of a file whose header another process may be writing: it tries again where it finds
/// both copies torn.
Result<ChosenHeader> read_header_beside(const std::string& path, int fd);

/// The same from a medium (its log range holds both copies).
Result<ChosenHeader> read_header(const medium::Medium& medium);

/// The feature field names: do the pool's fields have these names?
[[nodiscard]] bool has_field_names(const Header& header, std::string_view names) noexcept;
/// Gives a header these names and the feature's bit at the same time: write_header then writes both
/// in one. REQUIRES: names is not empty.
void set_field_names(Header& header, std::string_view names) noexcept;

/// Sets a header's layout text, cut to the bytes that it can hold, and its fingerprint.
void set_layout(Header& header, std::string_view text) noexcept;

/// Whether the pool is replicated over a log: changes that the log does not get part it from the
/// other copies.
[[nodiscard]] inline bool is_replicated(const Header& header) noexcept {
  return header.replication != ReplicationWords{};
}

/// Checks that it is a pool of this engine and root type. The error `incompatible` names the first
/// difference in the layout, or both lists of field names. The layout of a pool with a catalog is
/// not compared here.
Status check_identity(const std::string& path, const Header& header, const Identity& who);

/// HEADER-1: raises the sequence, computes the checksum, and writes one copy, fence, the other,
/// fence.
Status write_header(medium::Medium& medium, Header& header, bool write_b_first);

}  // namespace perdure::pool
