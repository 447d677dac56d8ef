// SPDX-License-Identifier: BSD-3-Clause
//
// ALLOC-1 (medium.hpp) for a pool: what is allocated when. A new pool and a copy without holes
// differ in nothing here.
//
//   header copies, each ring's first page     when the pool is made, and at each opening for
//                                             writing
//   directory, as far as home's chunks go     the same, and before home grows
//   chunks of spans and large objects         before a transaction may use them (heap); growth
//                                             allocates what it adds at once
//   what recovery will store to               before it stores anything (Targets)
//   the rest of a ring                        before the first record there (log/extent.hpp)
// An opening for writing allocates the chunks that the directory says are used, too: a file that
// was copied sparsely has holes where they held zeros. Whatever is refused is `full`, and nothing
// has been stored by then.
// Thread safety: plain functions; Targets is one thread's.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::pool {

/// The directory's words for a home of `home_bytes`, and those behind them that applying a heap op
/// may look at (heap_apply.hpp).
Status allocate_directory(medium::Medium& medium, std::uint64_t max_home_bytes,
                          std::uint64_t home_bytes);
/// Chunks [chunk, + count) of home.
Status allocate_chunks(medium::Medium& medium, std::uint64_t chunk, std::uint64_t count);
/// Header copies, the rings' first pages, and the directory.
Status allocate_frame(medium::Medium& medium, const Header& header);
/// All that a pool which exists says is in use. Before an opening for writing stores anything.
Status allocate_used(medium::Medium& medium, const Header& header);

/// What recovery is about to store to in home: told of all of it first, it allocates that.
class Targets {
 public:
  /// Costs nothing where home is allocated as a whole.
  Targets(medium::Medium& medium, const Header& header);
  /// Is there anything to be told?
  [[nodiscard]] bool wanted() const noexcept { return !chunks_.empty(); }
  /// n words at a home offset. What lies outside home is ignored: it will be refused elsewhere.
  void words(std::uint64_t offset, std::uint64_t n) noexcept;
  /// The chunks of the block's span, or its own.
  void block(const HeapOp& op) noexcept;
  Status allocate();

 private:
  void mark(std::uint64_t chunk, std::uint64_t count) noexcept;
  medium::Medium& medium_;
  const std::uint64_t max_home_bytes_;
  std::vector<bool> chunks_;  // of home; empty: nothing is wanted
};

}  // namespace perdure::pool
