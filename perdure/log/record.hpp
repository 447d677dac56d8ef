// SPDX-License-Identifier: BSD-3-Clause
//
// Record: what a log holds. It consists of a header of three words, entries of an even number of
// words, and zeros up to the append unit.
//
//   word 0  id (48 bits) | kind << 48         the last transaction in the record
//   word 1  checksum                          over everything below, word 0, word 2 and the
//                                             position, seeded with the pool's uuid, the epoch and
//                                             the ring: what an earlier generation, opening or
//                                             pool left there never checks (RECOVERY-2, LAW-10)
//   word 2  payload words (32 bits) | transactions << 32; a dependent record holds one, and the low
//           16 bits of its commit timestamp << 32 (the 48 bits above them are its id)
//   word 3  entries; in a packed record what log/packed.hpp says
//
// An entry is a key and what follows it: (offset / 8) << 24 | count << 4 | entry kind.
//   words   count values, to be stored at the offset in the data region; one word of zero after
//           them if count is even (entries stay even)
//   alloc, free            the block at offset; count = size class; then one word: chunks of a
//                          large block, otherwise 0
//   end     closes one of several transactions in a record; then its id
//   before  as words, but old values: undo logs
//   after   the record counts only with the one of that commit timestamp in ring `count`; then the
//           timestamp (dependencies.hpp)
//
// A record carries no mark of what was durable when it was written, because it needs none: a ring's
// writer starts a record only when the one before it is durable. So a broken record with a whole
// one above it was durable once, and is damage.
// Source: DudeTM (ASPLOS '17) section 3.2-3.3; its end mark is replaced by the checksum here.
// Self-validation by checksum is common practice.
// record_writer.hpp writes them.
// Thread safety: views are values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/base/checksum.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::log {

inline constexpr std::size_t header_words = 3;
inline constexpr std::uint64_t id_mask = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t max_count = (1 << 20) - 1;

/// group: several transactions, one after another. combined: several transactions' heap ops and the
/// last value of each of their words (papers/dudetm/combiner.hpp). packed: a combined record's
/// payload, compressed. dependent: one transaction, which may have read what was not durable
/// (dependencies.hpp). combined and packed are a feature of the pool, dependent and after another
/// one, note a third (pool/features.hpp).
enum class RecordKind : std::uint8_t {
  commit = 1,
  group = 2,
  undo = 3,
  combined = 4,
  packed = 5,
  dependent = 6
};
enum class EntryKind : std::uint8_t {
  words = 1,
  alloc = 2,
  free = 3,
  end = 4,
  before = 5,
  after = 6,
  note = 7  ///< note.hpp
};

/// A commit timestamp (tm/timestamps.hpp) in a dependent record: these low bits, and the record's
/// id. So ids rise along a ring as in every log, and those of one session last for 12 years.
inline constexpr unsigned timestamp_bits = 16;
[[nodiscard]] constexpr std::uint64_t id_of_timestamp(std::uint64_t timestamp) noexcept {
  return timestamp >> timestamp_bits;
}
/// The first timestamp whose id is above `id`.
[[nodiscard]] constexpr std::uint64_t first_timestamp_after(std::uint64_t id) noexcept {
  return (id + 1) << timestamp_bits;
}

[[nodiscard]] constexpr std::uint64_t entry_key(EntryKind kind, std::uint64_t offset,
                                                std::uint64_t count) noexcept {
  return offset << 21 | count << 4 | static_cast<std::uint64_t>(kind);
}
[[nodiscard]] constexpr EntryKind key_kind(std::uint64_t key) noexcept {
  return static_cast<EntryKind>(key & 15);
}
[[nodiscard]] constexpr std::uint64_t key_count(std::uint64_t key) noexcept {
  return key >> 4 & max_count;
}
[[nodiscard]] constexpr std::uint64_t key_offset(std::uint64_t key) noexcept {
  return key >> 24 << 3;
}
/// How many words the entry of that key takes.
[[nodiscard]] constexpr std::uint64_t span_of(std::uint64_t key) noexcept {
  const EntryKind kind = key_kind(key);
  const bool values =
      kind == EntryKind::words || kind == EntryKind::before || kind == EntryKind::note;
  return values ? (key_count(key) + 2) / 2 * 2 : 2;
}

/// What a record's checksum is bound to besides its words. There is one per ring and opening.
[[nodiscard]] inline std::uint64_t ring_seed(const std::uint8_t (&uuid)[16], std::uint64_t epoch,
                                             std::uint64_t ring) noexcept {
  // mutant: record-checksum-epoch
  return base::hash_bytes(uuid, 16, base::mix(epoch * 1024 + ring));
}

/// Computes word 1 of a record of n payload words (an even number) at `position`. `fold` is as it
/// starts from the ring's seed.
[[nodiscard]] inline std::uint64_t record_checksum(const std::uint64_t* words, std::uint64_t n,
                                                   std::uint64_t position,
                                                   base::Checksum fold) noexcept {
  for (std::uint64_t i = 0; i < n; i += 2)
    fold.add(words[header_words + i], words[header_words + i + 1]);
  fold.add(words[0], words[2]);
  // mutant: record-checksum-position
  fold.add(position, n);
  return fold.value();
}

/// One entry as a reader sees it.
struct Entry {
  EntryKind kind = EntryKind::words;
  std::uint64_t offset = 0;               ///< in the data region
  std::uint64_t count = 0;                ///< number of words, or the size class
  const std::uint64_t* values = nullptr;  ///< what follows the key
  [[nodiscard]] pool::HeapOp heap_op() const noexcept {
    return {offset, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(values[0]),
            kind == EntryKind::alloc};
  }
};

/// A record in a ring (contiguous thanks to the double mapping).
struct RecordView {
  const std::uint64_t* words = nullptr;
  std::uint64_t position = 0;
  [[nodiscard]] std::uint64_t id() const noexcept { return words[0] & id_mask; }
  [[nodiscard]] RecordKind kind() const noexcept { return static_cast<RecordKind>(words[0] >> 48); }
  [[nodiscard]] std::uint64_t payload_words() const noexcept { return words[2] & 0xffffffff; }
  [[nodiscard]] std::uint64_t transactions() const noexcept {
    return kind() == RecordKind::dependent ? 1 : words[2] >> 32;
  }
  /// Returns what recovery orders records by: of a dependent record its commit timestamp.
  [[nodiscard]] std::uint64_t timestamp() const noexcept {
    return id() << timestamp_bits | (kind() == RecordKind::dependent ? words[2] >> 32 : 0);
  }
  [[nodiscard]] std::uint64_t bytes(std::size_t unit) const noexcept {
    return ((payload_words() + header_words) * 8 + unit - 1) & ~(std::uint64_t{unit} - 1);
  }
  /// Returns whether the header makes sense in a ring whose records take at most `max_bytes`.
  [[nodiscard]] bool plausible(std::uint64_t max_bytes) const noexcept {
    const auto k = static_cast<std::uint64_t>(words[0] >> 48);
    return id() != 0 && k >= 1 && k <= 6 && (payload_words() + header_words) * 8 <= max_bytes &&
           payload_words() % 2 == 0;
  }
  [[nodiscard]] bool checks(std::uint64_t seed) const noexcept {
    return checks(base::Checksum(seed));
  }
  /// The same; `fold` is as it starts from the seed, which costs more than a short record's words.
  [[nodiscard]] bool checks(base::Checksum fold) const noexcept {
    // mutant: record-checksum
    return record_checksum(words, payload_words(), position, fold) == words[1];
  }
  /// Returns how many generations of a ring of `ring_bytes` after `position` the record was
  /// written: 1 to `most`, or 0 where it is no record of those.
  [[nodiscard]] std::uint64_t generations_later(std::uint64_t seed, std::uint64_t ring_bytes,
                                                std::uint64_t most) const noexcept {
    base::Checksum fold(seed);
    const std::uint64_t n = payload_words();
    for (std::uint64_t i = 0; i < n; i += 2)
      fold.add(words[header_words + i], words[header_words + i + 1]);
    fold.add(words[0], words[2]);
    for (std::uint64_t k = 1; k <= most; ++k) {
      base::Checksum all = fold;
      all.add(position + k * ring_bytes, n);
      if (all.value() == words[1]) return k;
    }
    return 0;
  }
};

/// Goes from record to record of a ring.
struct RingCursor {
  RingCursor(const medium::RingMap& map, std::uint64_t from) noexcept
      : at(map.base + from % map.bytes),
        ring_end(map.base + map.bytes),
        ring_bytes(map.bytes),
        position(from) {}
  [[nodiscard]] RecordView record() const noexcept {
    return {reinterpret_cast<const std::uint64_t*>(at), position};
  }
  /// `n` is at most the ring. Where records are short, each one's length is known only when it was
  /// read: so nothing waits for a division here, and lines are asked for 1 KiB ahead.
  void pass(std::uint64_t n) noexcept {
    position += n;
    at += n;
    if (at >= ring_end) at -= ring_bytes;
    __builtin_prefetch(at + 1024);
  }

  const std::byte* at;
  const std::byte* ring_end;
  std::uint64_t ring_bytes, position;
};

/// Calls f(Entry) for each entry of payload words [p, p + n). Returns false when an entry overruns
/// (only damage can do that).
template <class F>
bool each_entry(const std::uint64_t* p, std::uint64_t n, F&& f) {
  // A key of one word, apart from its offset.
  constexpr std::uint64_t one_word = entry_key(EntryKind::words, 0, 1),
                          but_offset = entry_key(EntryKind{15}, 0, max_count);
  const std::uint64_t* const end = p + n;
  while (p < end) {
    // Most entries are of one word. A predicted branch lets the next key be loaded at once; a
    // length that is computed from the key makes each load wait for the one before it.
    if ((*p & but_offset) == one_word && end - p >= 2) {
      f(Entry{EntryKind::words, key_offset(*p), 1, p + 1});
      p += 2;
      continue;
    }
    const Entry e{key_kind(*p), key_offset(*p), key_count(*p), p + 1};
    const std::uint64_t length = span_of(*p);
    if (static_cast<std::uint64_t>(end - p) < length) return false;
    f(e);
    p += length;
  }
  return true;
}

}  // namespace perdure::log
