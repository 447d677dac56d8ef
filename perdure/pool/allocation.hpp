// SPDX-License-Identifier: BSD-3-Clause
//
// ALLOC-1 (medium.hpp) for a pool: what is allocated when. A new pool and a copy without holes do
// not differ here.
//
//   header copies, each ring's first page     when the pool is made, and at each opening for
//                                             writing
//   the data region's first page, the
//   directory and the pages' checksums, for
//   the data region's chunks                  the same, and before the data region grows
//   chunks of spans and large objects         before a transaction may use them (heap); growth
//                                             allocates what it adds at once
//   what recovery will store to               before it stores anything (Targets)
//   the rest of a ring                        before the first record there (log/extent.hpp)
// An opening for writing also allocates the chunks that are used according to the directory: a file
// that was copied sparsely has holes where they held zeros. Every refusal is `full`, at a time when
// nothing has been stored yet.
// Thread safety: plain functions; any thread may name locations to a Targets object, one at a time
// may call allocate(), with no other call beside it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::pool {

/// Allocates file blocks for the data region's first page (format.hpp, late_catalog), for the
/// directory words of a data region of `data_bytes`, and for the words after them that the
/// application of a heap op may read (heap_apply.hpp); and for the checksums of its pages, where
/// the pool has them. It leaves out words behind the medium's end: growth allocates what it adds.
Status allocate_directory(medium::Medium& medium, const Directory& directory,
                          std::uint64_t data_bytes);
/// Allocates chunks [chunk, chunk + count) of the data region.
Status allocate_chunks(medium::Medium& medium, std::uint64_t chunk, std::uint64_t count);
/// Allocates the header copies, the rings' first pages, and the directory.
Status allocate_frame(medium::Medium& medium, const Header& header);
/// Allocates everything that is in use according to an existing pool. Must precede every store of
/// an opening for writing.
Status allocate_used(medium::Medium& medium, const Header& header);

/// Can an entry of a log name n words there? They lie in objects, or in the first page (format.hpp,
/// late_catalog); the heap's own words are named by its ops. Recovery asks before it stores what a
/// log says (LAW-10).
[[nodiscard]] inline bool possible_words(std::uint64_t offset, std::uint64_t n,
                                         std::uint64_t data_bytes,
                                         const Directory& directory) noexcept {
  if (offset % 8 != 0 || n == 0 || offset >= data_bytes || n > (data_bytes - offset) / 8)
    return false;
  const std::uint64_t end = offset + n * 8;
  if (end <= directory_offset) return true;
  for (std::uint64_t chunk = offset / chunk_bytes; chunk <= (end - 1) / chunk_bytes; ++chunk)
    if (directory.holds_words(chunk)) return false;
  return true;
}

/// The locations in the data region that recovery is about to store to: it names all of them first,
/// then allocates them.
class Targets {
 public:
  /// Costs nothing where the whole data region is allocated.
  Targets(medium::Medium& medium, const Header& header);
  /// Must the locations be named at all?
  [[nodiscard]] bool wanted() const noexcept { return !chunks_.empty(); }
  /// Names n words at an offset in the data region. Words outside the data region are ignored: they
  /// are refused elsewhere.
  void words(std::uint64_t offset, std::uint64_t n) noexcept {
    // Most stores are of a word, and recovery calls this for each.
    if (n == 1 && offset < data_bytes_)
      name(offset / chunk_bytes);
    else
      many_words(offset, n);
  }
  /// Names the chunks of the block's span, or those of a large block.
  void block(const HeapOp& op) noexcept;
  Status allocate();

 private:
  // Relaxed: the threads that name locations have ended before allocate().
  void name(std::uint64_t chunk) noexcept {
    std::atomic_ref<std::uint8_t>(chunks_[chunk]).store(1, std::memory_order_relaxed);
  }
  void many_words(std::uint64_t offset, std::uint64_t n) noexcept;
  void mark(std::uint64_t chunk, std::uint64_t count) noexcept;
  medium::Medium& medium_;
  const Directory directory_;
  std::uint64_t data_bytes_ = 0;  // 0 if none must be named
  // 1: named. A byte per chunk of the data region; empty if none must be named.
  std::vector<std::uint8_t> chunks_;
};

}  // namespace perdure::pool
