// SPDX-License-Identifier: BSD-3-Clause
//
// Frame: a part of a pool's history outside the pool: the entries of some transactions in id order,
// or a header. Frames follow each other in segments (segment.hpp). docs/format.md has the layout.
//
//   FRAME-1 A frame's chain is the hash of the chain before it, its own first 88 bytes and its
//           payload. So frames can't be left out, swapped, or taken from another history unnoticed.
//   FRAME-2 A frame of transactions covers the ids above `before`, up to `last`: those that are not
//           in it were never acknowledged. Each transaction's entries end with an `end` entry that
//           has its id.
// Thread safety: functions over their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/backup/hash.hpp"
#include "perdure/base/status.hpp"
#include "perdure/log/record.hpp"
#include "perdure/pool/format.hpp"

namespace perdure::backup {

/// The time, as frames and backups state it.
[[nodiscard]] std::uint64_t unix_nanoseconds();

/// What a frame holds.
enum class FrameKind : std::uint16_t {
  group = 1,   ///< transactions' entries (log/record.hpp)
  part = 2,    ///< a piece of the payload of the next group (replication/stream.hpp). In no segment
  term = 3,    ///< a new term begins (perdure/replication/stream.hpp); a text. In no segment
  header = 4,  ///< the pool's header from here on
};

inline constexpr char frame_magic[4] = {'P', 'D', 'F', 'R'};
inline constexpr std::uint16_t frame_version = 1;

/// The first 112 bytes of a frame; the payload follows.
struct FrameHeader {
  char magic[4];
  std::uint16_t version;
  FrameKind kind;
  std::uint8_t uuid[16];   ///< of the pool
  std::uint64_t term;      ///< for replication; 0
  std::uint64_t sequence;  ///< for replication; 0
  std::uint64_t before;    ///< the last id before this frame
  std::uint64_t last;      ///< the last id up to this frame's end
  std::uint32_t transactions;
  std::uint16_t part;        ///< kind part: its number, from 0 on; otherwise 0
  std::uint16_t parts;       ///< kind group: of how many frames `part` it is the end; otherwise 0
  std::uint64_t data_bytes;  ///< the data region's length that the entries need
  std::uint64_t unix_ns;     ///< when the frame was made; never below that of the frame before
  std::uint32_t payload_bytes;
  std::uint8_t codec;  ///< 0: as it is
  std::uint8_t flags;  ///< 0
  /// For replication: while it has nothing else, its writer appends a frame at least every so many
  /// milliseconds; 0: it does not. In segments 0.
  std::uint16_t beat_ms;
  std::uint64_t chain_before;  ///< the low word of the chain before
  Hash chain;                  ///< FRAME-1
};
static_assert(sizeof(FrameHeader) == 112 && std::is_trivially_copyable_v<FrameHeader> &&
              offsetof(FrameHeader, chain_before) == 88);

/// The place where a history has come to.
struct HistoryEnd {
  std::uint64_t last = 0;     ///< its last id
  std::uint64_t unix_ns = 0;  ///< when its last frame was made
  Hash chain;
};

/// One frame that was read.
struct Frame {
  FrameHeader header;
  const std::byte* payload = nullptr;
};

/// Reads the frame that [bytes, bytes + n) is, or begins with, without a look at what it continues.
/// Returns `corrupt` or `incompatible`, with `what` in the message.
Result<Frame> read_frame(const std::byte* bytes, std::uint64_t n, const std::string& name,
                         const std::string& what = "the frame");
/// Of a frame that is whole: `incompatible` for a kind that this build does not know, and `corrupt`
/// for a header frame of another size.
Status known_kind(const Frame& frame, const std::string& name,
                  const std::string& what = "the frame");
/// FRAME-1: whether the frame continues the history at `end`, and is whole.
[[nodiscard]] bool continues(const Frame& frame, const HistoryEnd& end);

/// Appends a frame to `to` that continues the history at `end`, and moves `end`. `header` has the
/// kind, uuid, last, transactions, data_bytes and unix_ns; the rest is filled in. Throws
/// std::bad_alloc and error(too_big), with `end` as it was.
void append_frame(std::vector<std::byte>& to, FrameHeader header, const void* payload,
                  std::uint64_t payload_bytes, HistoryEnd& end);
/// The same for a header frame.
void append_header_frame(std::vector<std::byte>& to, const pool::Header& header,
                         std::uint64_t unix_ns, HistoryEnd& end);

/// Reads the frames in [bytes, bytes + n), which continue the history at `end`, and calls f(frame)
/// for each; moves `end`. Returns `corrupt` for the first that does not, with `name` in the
/// message; f's first failure otherwise. Throws what f throws, and std::bad_alloc.
Status each_frame(const std::byte* bytes, std::uint64_t n, const std::string& name, HistoryEnd& end,
                  const std::function<Status(const Frame&)>& f);

/// Gathers the entries of records, in id order, as a frame's payload.
class EntryGatherer {
 public:
  /// Adds a record's transactions. Throws std::bad_alloc, with nothing added.
  void add(const log::RecordView& record);
  [[nodiscard]] bool empty() const noexcept { return words_.empty(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }
  [[nodiscard]] std::uint64_t last() const noexcept { return last_; }
  /// The header of a frame of what was gathered, whose ids reach to `last`.
  [[nodiscard]] FrameHeader header(std::uint64_t last, std::uint64_t data_bytes,
                                   std::uint64_t unix_ns) const noexcept;
  [[nodiscard]] const void* payload() const noexcept { return words_.data(); }  ///< bytes() long
  void clear() noexcept;
  /// Appends a frame of what was gathered, whose ids reach to `last`, and forgets it.
  void append_to(std::vector<std::byte>& to, const std::uint8_t (&uuid)[16], std::uint64_t last,
                 std::uint64_t data_bytes, std::uint64_t unix_ns, HistoryEnd& end);

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t last_ = 0;
  std::uint32_t transactions_ = 0;
};

}  // namespace perdure::backup
