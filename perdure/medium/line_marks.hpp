// SPDX-License-Identifier: BSD-3-Clause
//
// LineMarks: which cache lines hold stores that may not be durable yet, so that the cost of
// flush_all() depends on what was stored and not on the pool's size.
//
// A line's mark is `clean`, `dirty` or in flight. Dirty: the line was stored to since its last
// write-back began. In flight: the write-back has begun, by the thread whose slot the mark holds,
// at a time when that thread had begun as many fences as the mark holds. A byte per 4 KiB page
// above the lines' marks says that the page has marks to look at. Invariants:
//   MARK-1 A store marks its line dirty after its data, and the page after its line. x86 keeps
//          stores in order, so a thread that sees the page's mark sees the line's, and one that
//          sees the line's sees the data.
//   MARK-2 A flush changes dirty to in flight by an exchange before its write-back. The exchange
//          is a full barrier: the write-back contains every store whose mark the exchange
//          replaced, so the thread's next fence makes those stores durable.
//   MARK-3 A thread counts a fence before it waits. So when another thread sees that two fences
//          have begun since the mark was made, the wait of the first one is over, and the line is
//          durable. The mark holds only a count's last bits: a durable line may be taken for one
//          in flight, never the other way round.
//   MARK-4 Only flush_all makes lines clean: it takes the page's mark, then those of lines that
//          are dirty or may be in flight, by exchanges as in MARK-2, starts their write-back
//          itself, and fences before it returns. Since one flush_all runs at a time, a line that
//          the next one finds clean is durable.
//   MARK-5 A thread slot, a reserved one too, gets a new owner only after a fence of the old one
//          (base/thread_slot.cpp). So a line that is in flight by the caller's own slot needs no
//          write-back by flush_all: flush_all's own fence covers it.
// From these follows that flush_all makes every store durable that was made before it began:
// flush_all finds that store's mark or a later one. If the mark is dirty, flush_all writes the line
// back. If it is in flight, the write-back contains the store (MARK-2), and it either is known to
// be over (MARK-3), or is the caller's own (MARK-5), or is repeated. If it is clean, an earlier
// flush_all has done one of these (MARK-4).
// Another thread's fence cannot be forced: only a fence of the thread that started a write-back
// orders it. Hence the second write-back. Hence also flush_all does not cover streams of other
// threads, which no instruction of this thread reaches (medium.hpp).
// Thread safety: any thread may call mark() and start(). One thread at a time may call take_all(),
// and one cover(); these two may run concurrently.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "perdure/medium/words.hpp"

namespace perdure::medium {

class LineMarks {
 public:
  /// A line's state, as above.
  using Mark = std::uint16_t;
  static constexpr Mark clean = 0, dirty = 1;

  LineMarks() = default;
  LineMarks(const LineMarks&) = delete;
  LineMarks& operator=(const LineMarks&) = delete;
  ~LineMarks();

  /// The mark of a line whose write-back is started by the thread with this slot, which has begun
  /// `fences` fences so far.
  [[nodiscard]] static constexpr Mark in_flight(int slot, std::uint64_t fences) noexcept {
    return static_cast<Mark>((static_cast<unsigned>(slot) + 1) << count_bits |
                             (fences & count_mask));
  }
  /// For a mark in flight: the slot of its thread.
  [[nodiscard]] static constexpr int slot_of(Mark mark) noexcept {
    return (mark >> count_bits) - 1;
  }
  /// For a mark in flight: is its write-back surely over, now that its thread has begun `fences`
  /// fences (MARK-3)?
  [[nodiscard]] static constexpr bool over(Mark mark, std::uint64_t fences) noexcept {
    return ((fences - mark) & count_mask) >= 2;
  }

  /// Reserves address space for marks of a file of `most` bytes. Errors: those of mmap.
  Status reserve(const std::string& path, std::uint64_t most);
  /// Makes the marks of [0, bytes) usable, before the range is used. Errors: those of mprotect.
  Status cover(const std::string& path, std::uint64_t bytes);

  /// Must be called after a store to [offset, offset + n) (MARK-1).
  void mark(std::uint64_t offset, std::size_t n) noexcept {
    if (n == 0) return;
    for (std::uint64_t l = offset / line_bytes; l <= (offset + n - 1) / line_bytes; ++l)
      mark_line(l);
  }
  /// The same for a store within one line.
  void mark_line(std::uint64_t line) noexcept {
    // The store comes after the data; it pairs with the exchanges in start() and take().
    lines_[line].store(dirty, std::memory_order_release);
    // It is stored even if it is set: a look first could see a mark that take_all() is about to
    // take, before our line's mark is visible. It comes after the line's mark and pairs with the
    // exchange in take_all().
    pages_[line / lines_per_page].store(1, std::memory_order_release);
  }

  /// Must be called before the write-back of a line (MARK-2). mine() returns an in_flight() mark of
  /// the calling thread; it is called only where the line is dirty.
  template <class Mine>
  void start(std::uint64_t line, Mine&& mine) noexcept {
    // A thread sees its own store's mark, or one that replaced it; only a dirty one needs action.
    if (lines_[line].load(std::memory_order_relaxed) != dirty) return;
    // The exchange pairs with the release in mark(), and with take().
    lines_[line].exchange(mine(), std::memory_order_acq_rel);
  }

  /// Calls write_back(first line, count) for every run of lines that may not be durable, and makes
  /// them clean. The caller then fences. over(mark) says whether a mark in flight needs no
  /// write-back (MARK-3, MARK-5). before() is called before each page's marks. The marks of up to
  /// 512 runs are taken before the first write-back, because an exchange waits for the write-backs
  /// that its thread has started.
  template <class Over, class WriteBack, class Before>
  void take_all(Over&& over, WriteBack&& write_back, Before&& before) {
    std::array<Run, 512> runs;
    std::size_t n = 0;
    const auto write_back_taken = [&] {
      for (std::size_t i = 0; i < n; ++i) write_back(runs[i].first, runs[i].count);
      n = 0;
    };
    // The acquire pairs with the release in cover().
    const std::uint64_t pages = covered_.load(std::memory_order_acquire) / page_bytes;
    for (std::uint64_t p = 0; p < pages; ++p) {
      if (pages_[p].load(std::memory_order_relaxed) == 0) continue;
      before();
      // The page's mark is taken before its lines: a store that comes later marks the page again.
      pages_[p].exchange(0, std::memory_order_acq_rel);
      for (std::uint64_t l = p * lines_per_page; l < (p + 1) * lines_per_page; ++l) {
        if (!take(l, over)) continue;
        if (n != 0 && runs[n - 1].first + runs[n - 1].count == l) {
          ++runs[n - 1].count;
          continue;
        }
        if (n == runs.size()) write_back_taken();
        runs[n++] = {l, 1};
      }
    }
    write_back_taken();
  }

 private:
  struct Run {
    std::uint64_t first, count;
  };
  static constexpr std::uint64_t lines_per_page = page_bytes / line_bytes;
  // The mark holds slot + 1, so no mark in flight equals clean or dirty.
  static constexpr unsigned slot_bits = std::bit_width(static_cast<unsigned>(base::slot_count)),
                            count_bits = 16 - slot_bits;
  static constexpr unsigned count_mask = (1U << count_bits) - 1;
  static_assert(
      count_bits >= 3,
      "a mark has room for every slot, and for a count that tells 2 later fences from none");

  // Makes a line clean that may not be durable; returns false if it is durable.
  template <class Over>
  bool take(std::uint64_t line, Over& over) noexcept {
    // The acquire pairs with the exchange in start(), whose write-back came after it.
    Mark mark = lines_[line].load(std::memory_order_acquire);
    // mutant: flush-all-unfenced-lines
    while (mark != clean && (mark == dirty || !over(mark)))
      // This pairs as the exchange in start() does.
      if (lines_[line].compare_exchange_weak(mark, clean, std::memory_order_acq_rel)) return true;
    return false;
  }

  std::atomic<Mark>* lines_ = nullptr;
  std::atomic<std::uint8_t>* pages_ = nullptr;
  std::uint64_t most_ = 0;
  std::atomic<std::uint64_t> covered_{0};
};

}  // namespace perdure::medium
