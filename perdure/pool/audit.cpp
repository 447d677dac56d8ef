// SPDX-License-Identifier: BSD-3-Clause
//
// audit_heap, audit_heap_beside: read the directory and every bitmap, and report what is
// impossible. See heap.hpp.
#include <algorithm>
#include <thread>

#include "perdure/medium/medium.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::pool {
namespace {

constexpr std::size_t max_problems = 1000;
// Beside transactions: the structures that are read before a heap op that makes or dissolves one
// may go on.
constexpr std::uint64_t structures_at_once = 64;

std::string number(std::uint64_t n) { return std::to_string(n); }

class Auditor {
 public:
  Auditor(const std::byte* data, const Header& header, std::uint64_t data_bytes,
          const std::function<void(const HeapOp&)>& each_block, const medium::Medium* medium)
      : data_(data),
        medium_(medium),
        header_(header),
        data_bytes_(data_bytes),
        each_block_(each_block),
        directory_(header),
        first_(directory_.first_chunk()),
        end_(data_bytes / chunk_bytes),
        limit_(end_) {}

  HeapAudit run() {
    for (std::uint64_t c = 0; c < std::min(first_, directory_.chunks()); ++c) word_of_words(c);
    for (std::uint64_t c = first_; c < end_;) {
      if (directory_.holds_words(c))
        word_of_words(c++);
      else
        c += structure(c);
    }
    // Only words that the data region has: it does not have those of later sections yet.
    for (std::uint64_t c = std::max(end_, first_);
         c < directory_.chunks() && directory_.word(c) + 8 <= data_bytes_; ++c)
      if (load_word(c).bits != 0)
        problem(c, "a word " + number(load_word(c).bits) + " beyond the data region's end", "0");
    if (header_.root_bytes != 0 && !root_found_) {
      result_.problems.push_back("root: no allocated block of " + number(header_.root_bytes) +
                                 " bytes or more starts at data offset " +
                                 number(header_.root_offset));
    }
    if (header_.clean == 1 && header_.heap_exact == 1 && header_.heap_used != result_.bytes) {
      result_.problems.push_back("header: heap_used is " + number(header_.heap_used) +
                                 ", expected " + number(result_.bytes) + ", the sum of all blocks");
    }
    return std::move(result_);
  }

  // While transactions run: the structures of one turn of the loop are read under the lock under
  // which structures are made and dissolved. Blocks are set and cleared meanwhile. What only a pool
  // at rest has is not compared: the words beyond the end, the root's block, the sum of all blocks.
  HeapAudit run_beside(const OpenPool& pool,
                       const std::function<std::uint64_t(std::uint64_t)>& bits) {
    bits_ = &bits;
    for (std::uint64_t c = first_; c < end_; std::this_thread::yield()) {
      const auto lock = detail::lock_directory();
      // The pool may have grown: a structure at the old end reaches beyond it.
      // mutant: audit-of-a-pool-that-grows
      limit_ = pool.data_bytes() / chunk_bytes;
      c = behind_newer(c);
      for (std::uint64_t i = 0; i < structures_at_once && c < end_; ++i)
        if (directory_.holds_words(c))
          word_of_words(c++);
        else
          c += structure(c);
    }
    return std::move(result_);
  }

 private:
  // A structure that was made between two turns may reach over the place where the first one ended.
  [[nodiscard]] std::uint64_t behind_newer(std::uint64_t c) const {
    if (c == first_ || directory_.holds_words(c)) return c;
    const ChunkWord word = load_word(c);
    if (word.kind() != ChunkWord::rest || word.count() > c) return c;
    const ChunkWord head = load_word(c - word.count());
    const bool reaches = (head.kind() == ChunkWord::small || head.kind() == ChunkWord::large) &&
                         head.count() > word.count();
    return reaches ? c - word.count() + head.count() : c;
  }
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const {
    std::uint64_t v = 0;
    if (medium_ != nullptr && !medium_->allocated(medium_->log_bytes() + offset, sizeof v))
      return v;
    // The acquire pairs with the heap targets' stores and changes of bits.
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(data_ + offset),
                           __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] ChunkWord load_word(std::uint64_t chunk) const {
    return {load(directory_.word(chunk))};
  }
  void word_of_words(std::uint64_t c) {
    if (load_word(c).bits != 0)
      problem(c, "a word " + number(load_word(c).bits) + " for a chunk of the directory", "0");
  }

  void problem(std::uint64_t chunk, const std::string& found, const std::string& expected) {
    if (result_.problems.size() < max_problems)
      result_.problems.push_back("chunk " + number(chunk) + ": found " + found + ", expected " +
                                 expected);
  }

  void block(const HeapOp& block) {
    const std::uint64_t bytes = op_bytes(block);
    ++result_.blocks;
    result_.bytes += bytes;
    if (block.offset == header_.root_offset && bytes >= header_.root_bytes) root_found_ = true;
    if (each_block_) each_block_(block);
  }

  // Checks the structure that begins at chunk c; returns how many chunks it takes.
  std::uint64_t structure(std::uint64_t c) {
    const ChunkWord w = load_word(c);
    switch (w.bits & 0xff) {
      case ChunkWord::free:
        if (w.bits != 0) problem(c, "a free chunk's word of " + number(w.bits), "0");
        ++result_.chunks_free;
        return 1;
      case ChunkWord::small: return span(c, w);
      case ChunkWord::large: return large(c, w);
      case ChunkWord::rest:
        problem(c, "the rest of a span or object " + number(w.count()) + " chunks back",
                "something that begins here: nothing back there reaches this far");
        return 1;
      default: problem(c, "a word of kind " + number(w.bits & 0xff), "0 to 3"); return 1;
    }
  }

  // Checks the words of the chunks after the first. Returns false, having checked none, if the
  // structure extends beyond the data region.
  bool check_rest(std::uint64_t c, std::uint64_t count, const char* what) {
    const std::uint64_t left = std::min(limit_, directory_.section_end(c)) - c;
    if (count == 0 || count > left) {
      problem(c, std::string(what) + " of " + number(count) + " chunks",
              "1 to " + number(left) +
                  (left == limit_ - c ? ", what remains of the data region"
                                      : ", what remains before the next words of the directory"));
      return false;
    }
    for (std::uint64_t i = 1; i < count; ++i) {
      const ChunkWord w = load_word(c + i), rest = ChunkWord::make(ChunkWord::rest, 0, i);
      if (w != rest)
        problem(c + i, "the word " + number(w.bits),
                number(rest.bits) + ": part of the " + what + " that begins at chunk " + number(c));
    }
    return true;
  }

  std::uint64_t span(std::uint64_t c, ChunkWord w) {
    if (w.size_class() >= small_classes) {
      problem(c, "a span of size class " + number(w.size_class()),
              "0 to " + number(small_classes - 1));
      return 1;
    }
    const ClassInfo& info = classes[w.size_class()];
    if (w != span_word(w.size_class()))
      problem(c, "a span of " + number(w.count()) + " chunks",
              number(info.chunks) + " for blocks of " + number(info.bytes) + " bytes");
    if ((c - first_) % info.chunks != 0)
      problem(c, "a span of " + number(info.chunks) + " chunks",
              "one that begins at a multiple of its size from chunk " + number(first_));
    if (!check_rest(c, info.chunks, "span")) return 1;
    result_.chunks_small += info.chunks;
    const std::uint64_t at = c * chunk_bytes;
    for (std::uint32_t i = 0; i < info.first / 8; ++i) {
      const std::uint64_t bits = bits_ != nullptr ? (*bits_)(at + i * 8) : load(at + i * 8);
      const std::uint32_t in_word = info.blocks > i * 64 ? std::min(info.blocks - i * 64, 64U) : 0;
      const std::uint64_t legal =
          in_word == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << in_word) - 1;
      if ((bits & ~legal) != 0)
        problem(c, "bits set in bitmap word " + number(i) + " beyond the last block",
                "none above block " + number(info.blocks - 1));
      for (std::uint64_t b = bits & legal; b != 0; b &= b - 1)
        block({at + info.first +
                   (i * 64 + static_cast<std::uint32_t>(__builtin_ctzll(b))) *
                       std::uint64_t{info.bytes},
               w.size_class(), 0, true});
    }
    return info.chunks;
  }

  std::uint64_t large(std::uint64_t c, ChunkWord w) {
    if (w.size_class() != 0)
      problem(c, "a large object of size class " + number(w.size_class()), "0");
    if (!check_rest(c, w.count(), "large object")) return 1;
    result_.chunks_large += w.count();
    block({c * chunk_bytes, large_class, static_cast<std::uint32_t>(w.count()), true});
    return w.count();
  }

  const std::byte* data_;
  const medium::Medium* medium_;
  const Header& header_;
  const std::uint64_t data_bytes_;
  const std::function<void(const HeapOp&)>& each_block_;
  const Directory directory_;
  const std::uint64_t first_, end_;
  std::uint64_t limit_;  // no structure reaches beyond this chunk
  const std::function<std::uint64_t(std::uint64_t)>* bits_ = nullptr;  // null: load()
  bool root_found_ = false;
  HeapAudit result_;
};

}  // namespace

HeapAudit audit_heap_ops(const std::byte* data, const Header& header,
                         const std::function<void(const HeapOp&)>& each_block,
                         const medium::Medium* medium) {
  if (header.data_bytes < first_chunk(header) * chunk_bytes) {
    HeapAudit broken;
    broken.problems.push_back("header: a data region of " + number(header.data_bytes) +
                              " bytes is less than its directory");
    return broken;
  }
  return Auditor(data, header, header.data_bytes, each_block, medium).run();
}

HeapAudit audit_heap(
    const std::byte* data, const Header& header,
    const std::function<void(std::uint64_t offset, std::uint64_t bytes)>& each_block,
    const medium::Medium* medium) {
  const std::function<void(const HeapOp&)> each =
      each_block ? [&](const HeapOp& block) { each_block(block.offset, op_bytes(block)); }
                 : std::function<void(const HeapOp&)>();
  return audit_heap_ops(data, header, each, medium);
}

HeapAudit audit_heap_beside(const OpenPool& pool,
                            const std::function<std::uint64_t(std::uint64_t offset)>& bits,
                            const std::function<void(const HeapOp&)>& each_block) {
  return Auditor(pool.view(), pool.header(), pool.data_bytes(), each_block, &pool.medium())
      .run_beside(pool, bits);
}

}  // namespace perdure::pool
