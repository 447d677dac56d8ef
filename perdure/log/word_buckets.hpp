// SPDX-License-Identifier: BSD-3-Clause
//
// WordBuckets: stores to the data region that are gathered before they are made, in one bucket for
// each part of it. A log names words in the order in which they were stored, so that applying it
// entry by entry misses the caches and the TLB at nearly every word. The stores of one bucket lie
// in 2 MiB (more where the data region is larger than 512 MiB), and miss once for each line.
//
// Within a bucket stores keep their order, so that of two to one word the later one wins. A part of
// the data region consists of whole pages.
// Source: radix partitioning (Manegold, Boncz, Kersten, "Optimizing Main-Memory Join on Modern
// Hardware", IEEE TKDE 14(4), 2002).
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "perdure/medium/medium.hpp"

namespace perdure::log {

class WordBuckets {
  using Item = medium::WordStore;

 public:
  static constexpr std::size_t block_bytes = 4096, in_block = block_bytes / sizeof(Item) - 1;
  /// 32 MiB.
  static constexpr std::uint64_t max_blocks = (32 << 20) / block_bytes;

  /// For a data region of `data_bytes` and about `stores` calls of add(). Up to 255 stores take no
  /// memory but the object's own. Otherwise it is taken as it is used, at most `most_blocks` x
  /// 4 KiB, of which 0 counts as 1. Throws std::bad_alloc.
  WordBuckets(std::uint64_t data_bytes, std::uint64_t stores,
              std::uint64_t most_blocks = max_blocks);
  WordBuckets(const WordBuckets&) = delete;
  WordBuckets& operator=(const WordBuckets&) = delete;

  /// Whether add() may be called once more before drain().
  [[nodiscard]] bool has_space() const noexcept {
    return used_ != count_ || (bucket_count_ == 1 && !full(buckets_->end));
  }
  /// Gathers the store of `n` words, all on one page, which stay at `values` until drain(). With
  /// `mine` unset it takes the same steps to no effect: where a hash says which stores are a
  /// thread's own, a branch would be mispredicted half the time.
  void add(std::uint64_t offset, std::uint64_t n, const std::uint64_t* values, bool mine = true) {
    Bucket& bucket = buckets_[offset >> bucket_bits_];
    Item*& end = bucket.end;
    if (full(end)) start_block(bucket);
    *end = n == 1
               ? Item{offset, *values}
               : Item{offset | n << length_bit | is_run, reinterpret_cast<std::uint64_t>(values)};
    end += mine ? 1 : 0;
    // There are more buckets than the processor recognizes as streams.
    __builtin_prefetch(end + 8, 1);
  }
  /// Calls words(single words) and run(offset, n, values) for what was gathered: one bucket after
  /// the other, each in order. Afterwards nothing is gathered.
  template <class Words, class Run>
  void drain(Words&& words, Run&& run) {
    for (Bucket* bucket = buckets_; bucket != buckets_ + bucket_count_; ++bucket) {
      const Item* const end = std::exchange(bucket->end, nullptr);
      if (end == nullptr) continue;
      for (const Block* block = bucket->first; block != nullptr; block = block->next) {
        const Item* const from = block->items;
        drain_block({from, block->next == nullptr ? end : from + in_block}, words, run);
      }
    }
    used_ = 0;
  }

 private:
  struct Block {
    Block* next;  // in the bucket
    std::uint64_t unused;
    Item items[in_block];
  };
  static_assert(sizeof(Block) == block_bytes);
  struct Bucket {
    Block* first;         // valid where `end` is not null
    Item* end = nullptr;  // behind the last item
  };
  struct Free {
    void operator()(Block* p) const noexcept { std::free(p); }
  };
  static constexpr unsigned length_bit = 48;  // of a run's length, above its offset
  static constexpr std::uint64_t is_run = 1;  // offsets are multiples of 8

  // Blocks lie at multiples of their size, and so does the end of a full one. A block that holds
  // nothing yet ends behind its link. True also where a bucket has no block.
  [[nodiscard]] static bool full(const Item* end) noexcept {
    return reinterpret_cast<std::uintptr_t>(end) % block_bytes == 0;
  }
  void start_block(Bucket& bucket) noexcept {
    Block* const block = blocks_ + used_++;
    block->next = nullptr;
    (bucket.end == nullptr ? bucket.first : reinterpret_cast<Block*>(bucket.end)[-1].next) = block;
    bucket.end = block->items;
  }
  template <class Words, class Run>
  static void drain_block(std::span<const Item> items, Words& words, Run& run) {
    for (std::size_t i = 0, j = 0; i < items.size(); i = j) {
      while (j < items.size() && (items[j].offset & is_run) == 0) ++j;
      if (j != i) words(items.subspan(i, j - i));
      for (; j < items.size() && (items[j].offset & is_run) != 0; ++j)
        run(items[j].offset & ((std::uint64_t{1} << length_bit) - 1 - is_run),
            items[j].offset >> length_bit, reinterpret_cast<const std::uint64_t*>(items[j].value));
    }
  }

  const unsigned bucket_bits_;
  const std::uint64_t bucket_count_, count_;  // count_: of blocks
  std::uint64_t used_ = 0;
  Bucket* buckets_;
  Block* blocks_;
  Bucket own_bucket_;
  std::unique_ptr<Bucket[]> more_buckets_;
  std::unique_ptr<Block, Free> more_blocks_;
  alignas(block_bytes) std::byte own_block_[block_bytes];  // last: most of it is not touched
};

}  // namespace perdure::log
