// SPDX-License-Identifier: BSD-3-Clause
//
// Every struct that lies in a pool file, with its sizes and offsets asserted. docs/format.md says
// the same in prose.
//
// A pool file consists of [header copy A][header copy B][rings ...], which is the medium's log
// range, and then the data region: [superblock][directory][chunks ...]. All integers are
// little-endian; `endian` says so, and any other value is refused. Offsets into the data region
// count from its first byte.
//
// Crash invariants:
//   HEADER-1 a header is written to one copy, fence, to the other, fence; first to the copy that is
//            not the newest whole one. So at any instant one copy is whole, and the log that either
//            copy needs has not been truncated yet.
//   HEADER-2 `epoch` rises, durably, at every opening for writing, before the first record.
//   HEADER-3 the copy that an opening relies on is durable before the opening writes the other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace perdure::pool {

inline constexpr char magic[8] = {'P', 'E', 'R', 'D', 'U', 'R', 'E', '\0'};
/// The magic at header_b of a device whose creation is unfinished: see create_on_device.
inline constexpr char unfinished_magic[8] = {'P', 'E', 'R', 'D', 'U', 'R', 'E', '+'};
/// The newest version that this build reads, and the version of a new pool. A pool of an older
/// version keeps it until it first needs a feature (features.hpp).
inline constexpr std::uint32_t format_version = 4;
inline constexpr std::uint32_t first_version = 2;  ///< the oldest version that this build reads
/// Like version 2, except that the log may hold combined records (log/record.hpp).
inline constexpr std::uint32_t combined_version = 3;
/// The header has three words of features; every later change of the format is one of them.
inline constexpr std::uint32_t feature_version = 4;
/// Seed of the header's checksum, the same in all versions: a build that does not know a version
/// recognizes a sound header of that version and says so, instead of reporting damage.
inline constexpr std::uint64_t header_seed = 2;
inline constexpr std::uint32_t endian_mark = 0x01020304;
inline constexpr std::uint64_t header_a = 0;
inline constexpr std::uint64_t header_b = 64 << 10;
/// No ring begins before this offset; each ring's length is a multiple of 4096.
inline constexpr std::uint64_t first_ring = 128 << 10;
inline constexpr int max_rings = 128;
inline constexpr std::size_t layout_capacity = 2048;
inline constexpr std::size_t field_names_capacity = 640;

/// How commits are ordered and what recovery replays (docs/architecture.md, "Which order a pool
/// has").
enum class CommitOrder : std::uint32_t {
  /// strict: one ring per thread; locks are kept until the record is durable; recovery replays
  /// every valid record above `applied`, and gaps are allowed
  strict = 0,
  /// pipelined: one ring for the pool, written in id order; recovery stops where the sequence of
  /// valid records breaks
  pipelined = 1,
};

/// How far a pool and its replicated log agree: the place behind a frame of the log that counts, up
/// to which the pool has what the log has (STREAM-5, perdure/replication/stream.hpp).
struct ReplicationWords {
  std::uint64_t sequence;               ///< of the frame's message in the log; 0: before the first
  std::uint64_t term;                   ///< of the frame
  std::uint64_t last;                   ///< the last id up to the frame's end
  std::uint64_t unix_ns;                ///< when the frame was made
  std::uint64_t chain_low, chain_high;  ///< the frame's
  std::uint64_t claim;         ///< the random number in the TERM frame of this copy's last opening
  std::uint64_t claim_before;  ///< and in that of the opening before
  std::uint64_t own;           ///< 1: the term is this copy's
  friend bool operator==(const ReplicationWords&, const ReplicationWords&) noexcept = default;
};

/// The header, one block. Its first part never changes after creation; its second part does.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t endian;
  std::uint8_t uuid[16];
  char engine[32];     ///< registry name, zero padded
  std::uint64_t base;  ///< the address at which the view is mapped
  /// the limit of the data region. Feature raised limit: see directory.hpp, stated_max_bytes
  std::uint64_t max_data_bytes;
  std::uint64_t log_bytes;   ///< length of the log range: the data region starts there
  std::uint64_t ring_bytes;  ///< each ring's length
  std::uint32_t ring_count;
  CommitOrder order;
  /// Unit of the appends since the epoch began: 64 or 4096. A session adopts its medium's unit (the
  /// rings are empty then).
  std::uint32_t append_unit;
  /// length of the text in `layout`: at most layout_capacity, where a longer text is cut
  std::uint32_t layout_bytes;
  std::uint64_t root_offset;  ///< offset of the root object in the data region
  std::uint64_t root_bytes;
  /// base::hash_bytes(text, length, 0) of the root type's whole layout text
  std::uint64_t fingerprint;

  std::uint64_t sequence;    ///< rises at every write of the header
  std::uint64_t data_bytes;  ///< the data region's length; it grows
  std::uint64_t epoch;       ///< HEADER-2
  /// The checkpoint id: the data region holds every transaction with id <= applied, and the log
  /// records above it are replayed.
  std::uint64_t checkpoint_id;
  std::uint32_t clean;  ///< 1: the pool was closed cleanly, the rings hold nothing
  /// 1: heap_used is exact when `clean` is 1 (no opening since the creation had to recover)
  std::uint32_t heap_exact;
  /// bytes in allocated blocks: exact when clean and heap_exact are 1, otherwise a hint
  std::uint64_t heap_used;
  std::uint64_t created_unix;  ///< seconds
  /// from version 4 on (0 before): what a program must know to write the pool (features.hpp)
  std::uint64_t features_write;
  std::uint64_t features_read;      ///< what a program must know to read the pool
  std::uint64_t features_optional;  ///< what a program may ignore
  /// with the feature raised limit, the limit of the data region, which is above the one at
  /// creation; otherwise 0
  std::uint64_t raised_max_bytes;
  /// position (bytes since the epoch began) of each ring's first record that has not been truncated
  std::uint64_t ring_head[max_rings];

  char layout[layout_capacity];  ///< text of the root type's layout
  /// feature field names: length of the text in `field_names`; 0 if the pool has none
  std::uint32_t field_names_bytes;
  std::uint32_t reserved2;
  /// base::hash_bytes(text, length, 0) of the whole text of names
  std::uint64_t field_names_hash;
  /// the names of the root type's fields, beside its layout; a longer text is cut at this length
  char field_names[field_names_capacity];
  /// with the feature raised limit, the limit at creation, which decides the places of all
  /// directory words (directory.hpp); otherwise 0
  std::uint64_t first_max_bytes;
  /// feature archived log: the log holds every record of a transaction with an id above this one;
  /// otherwise 0 (archive of the log, docs/format.md)
  std::uint64_t log_from_id;
  /// feature data checksums: where the checksums of the pages lie in the data region, in whole
  /// chunks (page_checksums.hpp); otherwise 0
  std::uint64_t checksums_offset;
  std::uint64_t checksums_bytes;  ///< their length
  /// feature replication words: how far the pool and its replicated log agree; otherwise 0
  ReplicationWords replication;
  std::uint64_t reserved3[4];
  std::uint64_t checksum;  ///< of everything before it
};
static_assert(std::endian::native == std::endian::little,
              "a pool's integers are little-endian and are used in place");
static_assert(sizeof(Header) == 4096 && std::is_trivially_copyable_v<Header>);
static_assert(offsetof(Header, uuid) == 16 && offsetof(Header, engine) == 32 &&
              offsetof(Header, base) == 64);
static_assert(offsetof(Header, sequence) == 136 && offsetof(Header, features_write) == 192 &&
              offsetof(Header, ring_head) == 224 && offsetof(Header, layout) == 1248 &&
              offsetof(Header, field_names_bytes) == 3296);
static_assert(offsetof(Header, raised_max_bytes) == 216 &&
              offsetof(Header, first_max_bytes) == 3952);
static_assert(offsetof(Header, checksums_offset) == 3968 && offsetof(Header, checksum) == 4088);

/// Where ring i begins. The rings end where the log range does. On a device-dax, which can be
/// mapped only in pieces of 2 MiB, they are whole 2 MiB long and lie at multiples of 2 MiB.
[[nodiscard]] constexpr std::uint64_t ring_offset(const Header& h, std::uint32_t i) noexcept {
  return h.log_bytes - (h.ring_count - i) * h.ring_bytes;
}

/// The root type's layout text, as far as the header has space for it.
[[nodiscard]] inline std::string_view layout_text(const Header& h) noexcept {
  return {h.layout, h.layout_bytes < layout_capacity ? h.layout_bytes : layout_capacity};
}
/// The names of the root type's fields, as far as the header has space for them; empty if the pool
/// has none.
[[nodiscard]] inline std::string_view field_names_text(const Header& h) noexcept {
  return {h.field_names,
          h.field_names_bytes < field_names_capacity ? h.field_names_bytes : field_names_capacity};
}
[[nodiscard]] inline std::string_view engine_name(const Header& h) noexcept {
  return {h.engine, strnlen(h.engine, sizeof h.engine)};
}

// --- the data region -----------------------------------------------------------------------------

inline constexpr std::uint64_t chunk_bytes = 64 << 10;
/// The data region's first page is reserved: offset 0 is never an object. It is zero but for the
/// word at late_catalog.
inline constexpr std::uint64_t directory_offset = 4096;
/// The address of the catalog that a pool got after its creation (CATALOG-2), otherwise 0.
inline constexpr std::uint64_t late_catalog = 8;

inline constexpr std::uint64_t max_data_limit = 1ULL << 43;  ///< the limit of a log entry's offset

/// Chunk n is [n * chunk_bytes, (n + 1) * chunk_bytes) of the data region. The directory has a word
/// for every chunk that the data region may have; directory.hpp says where.

/// One word per chunk. Kind 0: free. Kind 1, small: first chunk of a span of `count` chunks, cut
/// into blocks of one size class. Kind 2: rest of a span or object (count = distance back to its
/// first chunk). Kind 3, large: first chunk of an object of `count` chunks.
/// A span begins with its bitmap (1 = allocated), padded to 64 bytes; the blocks follow. Spans of n
/// chunks lie at multiples of n from first_chunk, so that a block's offset and class say where its
/// span begins.
struct ChunkWord {
  std::uint64_t bits;
  enum Kind : std::uint32_t { free = 0, small = 1, rest = 2, large = 3 };
  [[nodiscard]] constexpr Kind kind() const noexcept { return static_cast<Kind>(bits & 0xff); }
  [[nodiscard]] constexpr std::uint32_t size_class() const noexcept {
    return static_cast<std::uint32_t>(bits >> 8 & 0xff);
  }
  /// small, large: number of chunks; rest: distance back
  [[nodiscard]] constexpr std::uint64_t count() const noexcept { return bits >> 16; }
  static constexpr ChunkWord make(Kind k, std::uint32_t cls, std::uint64_t count) noexcept {
    return {static_cast<std::uint64_t>(k) | std::uint64_t{cls} << 8 | count << 16};
  }
  friend constexpr bool operator==(ChunkWord, ChunkWord) noexcept = default;
};

}  // namespace perdure::pool
