// SPDX-License-Identifier: BSD-3-Clause
//
// A workload trace: what each committed transaction of a program did, as addresses and sizes, never
// a byte of contents. workload_recorder.hpp writes it, `perdure advise` replays it. (A medium's
// trace of stores and fences is something else: testing/trace.hpp.)
//
// The file is a header, then chunks. A chunk holds whole transactions of one thread, in their
// order, and a checksum. A transaction is a begin word, its sequence number, and its ops: one word
// each (kind in the upper 4 bits, offset in the data region below), with a second word where the
// table says so. A killed program leaves whole chunks and at most a piece of one, which reading
// leaves out. Little-endian, as pools are.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/engine/engine.hpp"

namespace perdure::engine {

inline constexpr char trace_magic[8] = {'P', 'e', 'r', 'd', 'T', 'r', 'c', '\n'};
inline constexpr std::uint32_t trace_version = 1;
inline constexpr std::uint32_t chunk_magic = 0x6b6e6843;  // "Chnk"

/// Why a recording ended.
enum class TraceEnd : std::uint32_t {
  open,    ///< the program still runs, or ended without closing the pool
  closed,  ///< the pool was closed
  limit,   ///< cut at PERDURE_TRACE_MAX
  failed   ///< cut: the trace file could not be written, or memory ran out
};

struct TraceHeader {
  char magic[8];
  std::uint32_t version;
  TraceEnd end;
  char engine[32];  ///< the instance that ran: "shadow", zero padded
  char medium[16];  ///< "file", "dax", "emulated", ...
  /// Options::durability; the number of threads that ran transactions, 0 until the recording ended
  std::uint32_t durability, threads;
  /// The data region's bound; its length when the recording began, and at the end its last length.
  std::uint64_t max_data_bytes, data_bytes;
  std::uint64_t first_data;  ///< below this offset lies the heap's directory
  std::uint64_t root_offset, root_bytes;
  std::uint64_t limit_bytes;  ///< of ops: where the recording is cut
  std::uint64_t reserved[8];
  std::uint64_t checksum;  ///< base::hash_bytes of all before it
};
static_assert(sizeof(TraceHeader) == 192 && std::is_trivially_copyable_v<TraceHeader>);
static_assert(offsetof(TraceHeader, engine) == 16 && offsetof(TraceHeader, durability) == 64 &&
              offsetof(TraceHeader, checksum) == 184);

struct TraceChunk {
  /// Threads are numbered from 0, by their first transaction.
  std::uint32_t magic, thread;
  std::uint64_t words;         ///< that follow
  std::uint64_t transactions;  ///< in them
  /// Attempts of this thread that were dropped since its last chunk: by conflicts; by giving up.
  std::uint64_t retried, rolled_back;
  std::uint64_t data_bytes, elapsed_ns;  ///< when it was written; since the recording began
  /// base::hash_bytes of the words, seeded with that of all before it.
  std::uint64_t checksum;
};
static_assert(sizeof(TraceChunk) == 64 && std::is_trivially_copyable_v<TraceChunk>);

// clang-format off
enum class TraceKind : std::uint8_t {
  begin       = 1,  ///< low bits: 1 an update, 2-4 the durability; second word: the sequence number
  read        = 2,  ///< a word
  read_words  = 3,  ///< second word: how many
  write       = 4,
  write_words = 5,  ///< second word: how many
  alloc       = 6,  ///< second word: bytes asked for
  free        = 7   ///< second word: bytes of the block; 0: the same transaction allocated it
};
// clang-format on
inline constexpr int kind_shift = 60;
[[nodiscard]] constexpr std::uint64_t trace_word(TraceKind kind, std::uint64_t low) noexcept {
  return static_cast<std::uint64_t>(kind) << kind_shift | low;
}
[[nodiscard]] constexpr TraceKind kind_of(std::uint64_t word) noexcept {
  return static_cast<TraceKind>(word >> kind_shift);
}
[[nodiscard]] constexpr std::uint64_t low_of(std::uint64_t word) noexcept {
  return word & ((std::uint64_t{1} << kind_shift) - 1);
}
[[nodiscard]] constexpr bool has_second(TraceKind kind) noexcept {
  return kind != TraceKind::read && kind != TraceKind::write;
}
[[nodiscard]] constexpr std::uint64_t begin_word(bool update, Durability durability) noexcept {
  return trace_word(TraceKind::begin, (update ? 1U : 0U) | static_cast<unsigned>(durability) << 1);
}
[[nodiscard]] constexpr bool is_update(std::uint64_t begin) noexcept { return (begin & 1) != 0; }
[[nodiscard]] constexpr Durability durability_of(std::uint64_t begin) noexcept {
  return static_cast<Durability>(begin >> 1 & 3);
}

/// A trace that was read and found sound: every op lies in the data region, every transaction
/// starts with its begin word.
struct WorkloadTrace {
  TraceHeader header{};
  std::vector<std::vector<std::uint64_t>> threads;  ///< each one's words
  std::uint64_t transactions = 0, retried = 0, rolled_back = 0, data_bytes = 0, elapsed_ns = 0;
  bool torn = false;  ///< the last chunk is not whole and was left out

  [[nodiscard]] bool cut() const noexcept {
    return header.end == TraceEnd::limit || header.end == TraceEnd::failed;
  }
};

/// Reads a trace. Fails with io, not_found, incompatible (no trace, or of another version),
/// corrupt.
Result<WorkloadTrace> read_workload_trace(const std::string& path);

/// Calls f(kind, low, second) for each op of a thread's words; second is 0 where the kind has none.
template <class F>
void for_each_op(const std::vector<std::uint64_t>& words, F&& f) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const TraceKind kind = kind_of(words[i]);
    const std::uint64_t low = low_of(words[i]);
    f(kind, low, has_second(kind) ? words[++i] : 0);
  }
}

}  // namespace perdure::engine
