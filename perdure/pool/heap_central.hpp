// SPDX-License-Identifier: BSD-3-Clause
//
// Central: the part of the heap that threads share: which chunks are free, and which spans have
// free blocks. All of it is volatile and learnt from the view as needed: a cursor reads the
// directory in steps, and a span's bitmap is read when the span is first used (HEAP-3).
//
// table_ holds what is known of each chunk (one entry per chunk, only address space until it is
// touched): nothing, "free", a Span, or a large object. Blocks in threads' caches and in
// transactions count as taken here.
//
// A span of an earlier session is *unopened* as long as nothing has been allocated from it or freed
// in it since the opening. No transaction has reserved a block of it, and no log has an op on it,
// for both would have opened it (HEAP-3). So if its bitmap has no bit set, it has no block, and
// this stays so while it is unopened: its chunks may serve any class (look_for_empty). It retains
// its directory words, as a span that was emptied in this session does; the op that makes something
// else there dissolves it (heap_apply.hpp).
// Thread safety: under the Heap's mutex, except span_at() and its result: spans live as long as the
// heap, and are reused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/pool/claim.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::pool {

/// Runs of free chunks. Neighbouring runs are joined.
class ChunkRuns {
 public:
  using Allocate = std::function<Status(std::uint64_t chunk, std::uint64_t count)>;
  void add(std::uint64_t chunk, std::uint64_t count);
  /// Takes `count` free chunks at a multiple of `align` (from `origin`), best fit, and returns
  /// their start; 0 if there are none. They are allocated (ALLOC-1): if `allocate` is refused for
  /// some chunks, these stay free, and others are tried. `refused` is the last refusal, if all were
  /// refused.
  std::uint64_t take(std::uint64_t count, std::uint64_t align, std::uint64_t origin,
                     const Allocate& allocate, Status& refused);
  /// Takes exactly these chunks, which are free; nothing is allocated.
  void remove(std::uint64_t chunk, std::uint64_t count) noexcept;
  /// The first run of consecutive free chunks from `chunk` on; there is none if count is 0.
  [[nodiscard]] ChunkRange from(std::uint64_t chunk) const noexcept;
  [[nodiscard]] std::uint64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] std::uint64_t longest() const noexcept {
    return by_length_.empty() ? 0 : by_length_.rbegin()->first;
  }

 private:
  void insert(std::uint64_t chunk, std::uint64_t count) noexcept;
  std::map<std::uint64_t, std::uint64_t>::iterator erase(
      std::map<std::uint64_t, std::uint64_t>::iterator run);

  std::map<std::uint64_t, std::uint64_t> by_start_;              // start -> count
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_length_;  // (count, start)
  std::uint64_t chunks_ = 0;
};

/// One span as this process knows it.
struct Span {
  enum State : std::uint8_t { available = 0, taken = 1, freeing = 2 };

  /// The span's first chunk. It changes under the mutex, when only a doomed transaction may look at
  /// it.
  std::atomic<std::uint64_t> chunk{0};
  std::uint32_t cls = 0;
  std::uint32_t free = 0;  ///< number of blocks available here
  std::uint32_t hint = 0;  ///< no block below this one is available
  bool listed = false;     ///< is it in its class's list of spans with available blocks?
  Span *before = nullptr, *after = nullptr;
  /// One byte per block. available: changed only under the mutex. taken <-> freeing: changed by the
  /// thread that frees the block.
  std::unique_ptr<std::atomic<std::uint8_t>[]> state;

  [[nodiscard]] const ClassInfo& info() const noexcept { return classes[cls]; }
  [[nodiscard]] std::uint64_t offset() const noexcept {
    return chunk.load(std::memory_order_relaxed) * chunk_bytes;
  }
};

class Central {
 public:
  /// `allocate` allocates chunks of the data region before they are used.
  Central(std::byte* view, const Directory& directory, ChunkRuns::Allocate allocate);
  ~Central();

  /// Takes up to `want` blocks of a class, lowest address last; fewer, or none, if the known chunks
  /// and those not yet read have no more.
  std::uint32_t take_blocks(std::uint32_t cls, std::uint32_t want, std::uint64_t* to,
                            std::uint64_t data_bytes);
  /// Takes `count` consecutive chunks and returns the first of them, or 0.
  std::uint64_t take_chunks(std::uint64_t count, std::uint64_t data_bytes);
  void give_block(std::uint64_t offset);
  void give_chunks(std::uint64_t chunk, std::uint64_t count);
  /// Gives up opened spans without a block in use, so that their chunks can serve any request.
  void drop_empty_spans();
  /// The same for unopened spans that the cursor has passed: reads the bitmaps of up to `most`
  /// spans that it has not read before. Returns how many it read: 0 if none are left. A session
  /// reads each span's bitmap here at most once.
  std::uint64_t look_for_empty(std::uint64_t most, std::uint64_t data_bytes);
  /// Reads on in the directory, by a page or to the end of a section. Returns false at the data
  /// region's end.
  bool look_further(std::uint64_t data_bytes);
  /// Looks at up to `most` free chunks from `chunk` on, and moves those that have blocks in the
  /// file (`has_blocks`) to `claim`, until that has max_chunks. A span without a block in use is
  /// claimed as a whole or not at all: its words are cleared together. Returns the chunk to
  /// continue at; 0 when the last free chunk has been looked at.
  std::uint64_t claim(std::uint64_t chunk, std::uint64_t most, std::uint64_t max_chunks,
                      const std::function<bool(std::uint64_t chunk)>& has_blocks, FreeClaim& claim);
  /// Makes these chunks free again, for every request.
  void unclaim(const std::vector<ChunkRange>& runs) noexcept {
    for (const ChunkRange& run : runs)
      if (run.count != 0) runs_.add(run.first, run.count);
  }

  /// The span that a chunk belongs to; null if it is not known as part of one. Any thread may call
  /// it without a lock.
  [[nodiscard]] Span* span_at(std::uint64_t chunk) const noexcept {
    // The acquire pairs with the release in enter(): the span is complete.
    const std::uintptr_t e = table_[chunk].load(std::memory_order_acquire);
    return e != 0 && e % 8 == 0 ? reinterpret_cast<Span*>(e) : nullptr;
  }
  /// Why free chunks could not be had since the last call: the disk is full. Ok: there were no free
  /// chunks.
  [[nodiscard]] Status take_refusal() { return std::exchange(refused_, {}); }
  /// Makes the span that the view has at `head` known (HEAP-3). Returns null if the view has none
  /// there, or if its chunks have been given up since: the view's words say "span" until the
  /// transaction that has them now commits.
  Span* open_span(std::uint64_t head, std::uint64_t data_bytes);
  /// Marks a large object as about to be freed (true), or as kept after all. Returns false, and
  /// changes nothing, if it is about to be freed already, or is no large object any more.
  bool mark_large(std::uint64_t chunk, std::uint64_t count, bool freeing);

  [[nodiscard]] ChunkWord word(std::uint64_t chunk) const noexcept {
    return {__atomic_load_n(reinterpret_cast<const std::uint64_t*>(view_ + directory_.word(chunk)),
                            __ATOMIC_ACQUIRE)};  // pairs with the targets' store
  }
  [[nodiscard]] bool bit(std::uint64_t span_offset, std::uint32_t index) const noexcept {
    return (__atomic_load_n(
                reinterpret_cast<const std::uint64_t*>(view_ + span_offset) + index / 64,
                __ATOMIC_RELAXED) >>
                index % 64 &
            1) != 0;
  }
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t free_chunks() const noexcept { return runs_.chunks(); }
  [[nodiscard]] std::uint64_t longest_run() const noexcept { return runs_.longest(); }
  [[nodiscard]] std::uint64_t words_looked_at() const noexcept { return words_; }
  [[nodiscard]] std::uint64_t spans_looked_at() const noexcept { return spans_opened_; }
  [[nodiscard]] std::uint64_t bitmaps_looked_at() const noexcept { return bitmaps_; }

 private:
  // Entries of table_ that are no Span: the low three bits say what it is, the bits above have a
  // large object's chunks.
  enum Tag : std::uintptr_t { known_free = 1, large_taken = 3, large_freeing = 5 };
  struct Class {
    Span* listed = nullptr;               // spans with available blocks
    std::uint32_t empty = 0;              // how many of those have no block in use
    std::vector<std::uint64_t> unopened;  // first chunks of spans that the cursor has seen
    std::size_t looked_at = 0;            // how many at its front have blocks (look_for_empty)
    // to be reused; the capacity suffices for every span of the class
    std::vector<Span*> retired;
    std::size_t made = 0;
  };

  Span* usable_span(std::uint32_t cls, std::uint64_t data_bytes);
  Span* make_span(std::uint32_t cls, std::uint64_t chunk);
  [[nodiscard]] bool is_whole(std::uint64_t head, ChunkWord word,
                              std::uint64_t data_bytes) const noexcept;
  /// Does any of the span's blocks have the bit value that `used` asks for?
  [[nodiscard]] bool any_block(std::uint64_t head, const ClassInfo& info, bool used) const noexcept;
  void enter(Span& span, bool in) noexcept;
  void list(Span& span) noexcept;
  void unlist(Span& span) noexcept;
  void retire(Span& span);

  std::byte* const view_;
  const Directory directory_;
  const std::uint64_t first_, chunks_;
  std::uint64_t cursor_;  // the chunks below it have been read
  std::atomic<std::uintptr_t>* table_ = nullptr;
  ChunkRuns runs_;
  const ChunkRuns::Allocate allocate_;
  Status refused_;
  Class classes_[small_classes];
  std::vector<std::unique_ptr<Span>> spans_;
  std::uint64_t words_ = 0, spans_opened_ = 0, bitmaps_ = 0;
};

}  // namespace perdure::pool
