// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/word_buckets.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace perdure::log {
namespace {

constexpr std::size_t huge_page = 2 << 20;
// A bucket's lines and their marks fit into a second-level cache, and its pages into a TLB.
constexpr unsigned min_bucket_bits = 21;
// Of the buckets: each has a line that is stored to next, and all of these fit into the first-level
// cache.
constexpr unsigned max_count_bits = 8;

// Where all stores fit into one block, they are too few to be sorted.
unsigned bits_for(std::uint64_t data_bytes, std::uint64_t stores) noexcept {
  if (stores <= WordBuckets::in_block) return 63;
  const auto bits = static_cast<unsigned>(std::bit_width(data_bytes));
  return std::max(min_bucket_bits, bits - std::min(bits, max_count_bits));
}

}  // namespace

WordBuckets::WordBuckets(std::uint64_t data_bytes, std::uint64_t stores, std::uint64_t most_blocks)
    : bucket_bits_(bits_for(data_bytes, stores)),
      bucket_count_((data_bytes >> bucket_bits_) + 1),
      count_(stores <= in_block ? 1
                                : std::clamp<std::uint64_t>(most_blocks, 1,
                                                            stores / in_block + bucket_count_ + 1)),
      buckets_(&own_bucket_),
      blocks_(reinterpret_cast<Block*>(own_block_)) {
  if (stores <= in_block) return;
  more_buckets_ = std::make_unique<Bucket[]>(bucket_count_);
  buckets_ = more_buckets_.get();
  const std::size_t bytes = count_ * block_bytes,
                    unit = bytes < huge_page ? block_bytes : huge_page;
  more_blocks_.reset(
      static_cast<Block*>(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)));
  blocks_ = more_blocks_.get();
  if (blocks_ == nullptr) throw std::bad_alloc();
  // This is advice only. Page faults of 4 KiB would take a third of the time that buckets save.
  if (bytes >= huge_page) (void)::madvise(blocks_, bytes, MADV_HUGEPAGE);
}

}  // namespace perdure::log
