// SPDX-License-Identifier: BSD-3-Clause
//
// Versions: what 64-byte lines of the shadow held before transactions stored to them, while a
// snapshot is open (open_snapshots.hpp). A line is the unit because it is what a transaction owns:
// what is in it before the owner's first store is what the last committed transaction left.
//
//   heads    of each line of the data region the index of its newest entry; 0: it has none
//   entries  a line's old contents, the stamp of the transaction that was about to change it, and
//            the next older entry of the line; or, in no line's chain, heap ops of a transaction
//   chunks   the entries of one writing thread, in 16 KiB; they are what memory is given out by
//
// A stamp is 2 * id of a transaction that committed, 2 * clock + 1 of one that was rolled back when
// the clock said so, and in_flight before that. Ids are drawn while the line is owned, so along a
// line's chain stamps only fall. The state at id S has, of each line, the contents of the oldest
// entry with a stamp above 2 * S, or the line itself where there is no such entry.
//
//   SNAP-1 A chunk is used again only when no open snapshot needs its entries: the stamps of all of
//          them are at most 2 * S of the oldest one. An entry has the stamp of the entry behind it,
//          which is final when it is linked, so no reader follows a link to what was used again;
//          and it has its line, so no head leads to another line's entry.
//   SNAP-2 An entry is published, by a release store of the head, before the word is stored, which
//          is a release store too. A reader that loads a word of a transaction that is not in its
//          state finds that transaction's entry at its second look at the head. There it also looks
//          whether the stamp is the same, because the entry's memory may have been used again for
//          the same line.
//   SNAP-7 A transaction's heap ops are in entries before they are applied, and it applies them
//          before it stops being open. Bitmaps are shared by transactions and have no old contents,
//          so the blocks that were allocated at id S follow from those that are allocated now: of a
//          block that ops of ids above S name, the first one says what it was. Whoever reads the
//          bitmaps, then the clock, and then the ops of ids up to the clock's, misses none that the
//          bitmaps show, and of no block an earlier op than one that it finds: a block is freed and
//          allocated again only by a transaction that begins when the free is in its entry, and
//          that draws its id after it. A word of a bitmap counts only where its line has no entry
//          above 2 * S. Otherwise it may be data: chunks of a span without blocks are given to
//          others, who store to them before the directory says so. But then ops name every block
//          that the span had at S, or has now.
// Every field is stored by a release and loaded by an acquire, which pair with each other: what
// reads a field of an entry that was used again sees what happened before, such as that its
// snapshot has expired (SNAP-6).
// Thread safety: entries are pushed by the owner of their line; claim() under the caller's lock;
// read() by any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "perdure/engine/view.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::shadow {

/// Called between the steps of the protocol, by tests that schedule threads. Null: nothing is.
inline constinit std::atomic<void (*)()> snapshot_point{nullptr};
inline void point() noexcept {
  if (auto* const f = snapshot_point.load(std::memory_order_relaxed); __builtin_expect(!!f, 0)) f();
}

class Versions {
 public:
  static constexpr std::uint64_t line_bytes = 64, line_words = 8;
  static constexpr std::uint64_t in_flight = ~std::uint64_t{0};
  [[nodiscard]] static constexpr std::uint64_t committed(std::uint64_t id) noexcept {
    return 2 * id;
  }
  [[nodiscard]] static constexpr std::uint64_t rolled_back(std::uint64_t clock) noexcept {
    return 2 * clock + 1;
  }

  struct Entry {
    /// Its own, and that of the entry behind it; of heap ops the number of the first one among the
    /// transaction's.
    std::atomic<std::uint64_t> stamp, before;
    std::atomic<std::uint64_t> line;  ///< an offset in the data region / 64, or heap_ops
    std::atomic<std::uint32_t> next;  ///< the next older entry; 0: none
    std::array<std::atomic<std::uint64_t>, line_words> words;
  };
  /// The line of an entry that has heap ops: two words each, as op_words() makes them, then zeros.
  static constexpr std::uint64_t heap_ops = ~std::uint64_t{0};
  static constexpr std::uint64_t ops_per_entry = line_words / 2;
  using OpWords = std::array<std::uint64_t, 2>;
  [[nodiscard]] static OpWords op_words(const pool::HeapOp& op) noexcept {
    return {op.offset | (op.set ? 1U : 0U), std::uint64_t{op.chunks} << 32 | op.cls};
  }
  static constexpr std::uint32_t chunk_entries = (16 << 10) / sizeof(Entry);
  static constexpr std::uint32_t no_chunk = ~std::uint32_t{0};
  /// Bytes of one chunk.
  static constexpr std::uint64_t chunk_bytes = chunk_entries * sizeof(Entry);

  /// `view` is the shadow; `memory` bounds the entries' bytes (the heads take 1/16 of the part of
  /// the data region that is stored to). Throws std::bad_alloc.
  Versions(const std::byte* view, std::uint64_t max_data_bytes, std::uint64_t memory);

  /// The head of a line, for its owner and readers.
  [[nodiscard]] std::atomic<std::uint32_t>& head(std::uint64_t line) const noexcept {
    return heads_.data()[line];
  }
  /// The entry of an index that is not 0.
  [[nodiscard]] Entry& entry(std::uint32_t index) const noexcept {
    return entries_.data()[index - 1];
  }
  [[nodiscard]] const std::uint64_t* words(std::uint64_t line) const noexcept {
    return reinterpret_cast<const std::uint64_t*>(view_ + line * line_bytes);
  }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return data_bytes_; }

  /// Takes a chunk whose entries have stamps up to `bound`, or a new one, and returns its number;
  /// no_chunk where there is none. Called under the caller's lock.
  [[nodiscard]] std::uint32_t claim(std::uint64_t bound) noexcept;
  /// Says that all entries of a chunk have stamps up to `stamp`, and its thread has left it.
  void left(std::uint32_t chunk, std::uint64_t stamp) noexcept {
    chunk_[chunk].newest.store(stamp, std::memory_order_release);  // pairs with claim()
  }
  /// The chunk that the chunk's thread had before, for that thread.
  [[nodiscard]] std::uint32_t& previous(std::uint32_t chunk) noexcept {
    return chunk_[chunk].previous;
  }
  /// Bytes of the chunks that were taken so far. Any thread may call it.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return used_.load(std::memory_order_relaxed) * chunk_bytes;
  }

  /// Copies n words, all in one line, as they were at id S. The result counts only if `expired` is
  /// not set afterwards (SNAP-6).
  void read(std::uint64_t id, std::uint64_t offset, std::uint64_t* to, std::uint64_t n,
            const std::atomic<bool>& expired) const noexcept {
    const std::uint64_t line = offset / line_bytes, from = offset / 8 % line_words;
    for (;;) {
      const std::uint32_t first = head(line).load(std::memory_order_acquire);  // the saver's push
      std::uint64_t stamp = 0;
      if (const Entry* const found = oldest_above(committed(id), line, first, stamp, expired);
          found != nullptr) {
        for (std::uint64_t i = 0; i < n; ++i)
          to[i] = found->words[from + i].load(std::memory_order_acquire);
        return;
      }
      point();
      // Acquires, so that the second look follows.
      for (std::uint64_t i = 0; i < n; ++i) to[i] = tm::load_word(words(line) + from + i);
      point();
      // mutant: snapshot-second-look
      if (is_still(line, first, stamp)) return;
    }
  }

  /// The word of a span's bitmap at this offset; 0 where it does not count (SNAP-7).
  [[nodiscard]] std::uint64_t bits(std::uint64_t id, std::uint64_t offset,
                                   const std::atomic<bool>& expired) const noexcept {
    const std::uint64_t line = offset / line_bytes;
    for (;;) {
      const std::uint32_t first = head(line).load(std::memory_order_acquire);  // the saver's push
      std::uint64_t stamp = 0;
      // mutant: snapshot-bitmap-is-data
      if (oldest_above(committed(id), line, first, stamp, expired) != nullptr) return 0;
      const std::uint64_t word = tm::load_word(words(line) + offset / 8 % line_words);
      point();
      if (is_still(line, first, stamp)) return word;
    }
  }
  /// Calls f(stamp, number, op) for each heap op of an id above `id`, up to `last`, in no order;
  /// `number` is its place among its transaction's. The result counts only if the snapshot of `id`
  /// has not expired afterwards.
  template <class F>
  void each_op(std::uint64_t id, std::uint64_t last, F&& f) const {
    const std::uint32_t end = used_.load(std::memory_order_acquire) * chunk_entries;  // claim()
    for (std::uint32_t index = 1; index <= end; ++index) {
      if (index % chunk_entries == 1) point();
      const Entry& at = entry(index);
      // In this order, as in oldest_above(). Acquires: pair with the releases in Saver.
      const std::uint64_t stamp = at.stamp.load(std::memory_order_acquire);
      // mutant: snapshot-newer-heap-ops, snapshot-heap-ops-up-to-the-clock
      if (stamp <= committed(id) || stamp > committed(last)) continue;
      if (at.line.load(std::memory_order_acquire) != heap_ops) continue;
      const std::uint64_t first = at.before.load(std::memory_order_acquire);
      for (std::uint64_t i = 0; i < ops_per_entry; ++i) {
        const std::uint64_t where = at.words[2 * i].load(std::memory_order_acquire),
                            what = at.words[2 * i + 1].load(std::memory_order_acquire);
        if (where == 0) break;
        f(stamp, first + i,
          pool::HeapOp{where & ~std::uint64_t{1}, static_cast<std::uint32_t>(what),
                       static_cast<std::uint32_t>(what >> 32), where % 2 != 0});
      }
    }
  }

 private:
  // The line's oldest entry with a stamp above `bound`, from its first one on; null: it has none.
  // `stamp` becomes that of the first.
  [[nodiscard]] const Entry* oldest_above(std::uint64_t bound, std::uint64_t line,
                                          std::uint32_t first, std::uint64_t& stamp,
                                          const std::atomic<bool>& expired) const noexcept {
    if (first == 0) return nullptr;
    const Entry* at = &entry(first);
    // In this order: an entry that is used again gets its line before its stamp.
    stamp = at->stamp.load(std::memory_order_acquire);
    // mutant: snapshot-entry-s-line
    if (stamp <= bound || at->line.load(std::memory_order_acquire) != line) return nullptr;
    // What has expired is used again, and links may lead in a circle.
    while (at->before.load(std::memory_order_acquire) > bound &&
           !expired.load(std::memory_order_relaxed)) {
      const std::uint32_t next = at->next.load(std::memory_order_acquire);
      if (next == 0) break;
      at = &entry(next);
    }
    return at;
  }
  [[nodiscard]] bool is_still(std::uint64_t line, std::uint32_t first,
                              std::uint64_t stamp) const noexcept {
    // mutant: snapshot-second-look-stamp
    return head(line).load(std::memory_order_acquire) == first &&
           (first == 0 || entry(first).stamp.load(std::memory_order_acquire) == stamp);
  }

  const std::byte* const view_;
  const std::uint64_t data_bytes_;
  const std::uint32_t chunks_;
  LazyArray<std::atomic<std::uint32_t>> heads_;
  LazyArray<Entry> entries_;
  struct Chunk {
    std::atomic<std::uint64_t> newest;  // a bound of its stamps; in_flight while a thread has it
    std::uint32_t previous;
  };
  const std::unique_ptr<Chunk[]> chunk_;
  std::atomic<std::uint32_t> used_{0};  // chunks below this number were taken once
  std::uint32_t hand_ = 0;              // the chunk that claim() looks at next
};

}  // namespace perdure::engine::shadow
