// SPDX-License-Identifier: BSD-3-Clause
//
// MarkedMedium: what mapped memory and the test media have in common: which line is marked when,
// the order of marks, write-backs and fences, and what is counted. A test therefore runs the code
// that real memory runs.
//
// `Hardware` derives from MarkedMedium<Hardware> and has these members, which only MarkedMedium
// calls:
//   put(offset, src, n)               ordinary stores
//   put_past(offset, src, n)          non-temporal stores of whole lines
//   put_past_ring(ring, at, src, n)   the same to ring bytes [at, at + n), which may wrap once
//   write_back(first, count)          starts the write-back of lines number first, first + 1, ...
//   write_back_ring(ring, at, count)  the same from ring byte `at` on; may wrap once
//   charge(first, count)              waits for these lines as a paper's model prescribes
//   Status wait(bool everything)      returns when what this thread wrote back or stored past the
//                                     cache is durable; `everything`: at the end of flush_all
//   flush_all_is_one()                flush_all charges one line for all that it writes back
//   sync_metadata()                   flush_all's last step
//   step(Step)                        a test's scheduler may let other threads run now
//   leave_out(call, site)             the mutation gate omits this call (call_sites.hpp)
//   covered(from, to)                 [from, to) of the data region has been mapped
// Invariants: MARK-1 to MARK-5 (line_marks.hpp). Thread safety: as medium.hpp says.
#pragma once

#include <algorithm>
#include <cassert>
#include <mutex>

#include "perdure/medium/line_marks.hpp"
#include "perdure/medium/mapped.hpp"

namespace perdure::medium {

/// What a thread does next. Another thread may run between any two steps.
enum class Step : std::uint8_t {
  store,       ///< store() stores bytes
  mark,        ///< store() marks their lines
  stream,      ///< stream() or append() stores bytes past the cache
  take,        ///< flush(), flush_lines(), flush_ring() or flush_all() changes the marks of lines
  write_back,  ///< one of them starts the write-back of lines
  fence,       ///< fence() or flush_all() waits
  drop         ///< drop_copies() gives memory back
};

template <class Hardware>
class MarkedMedium : public MappedMedium {
 public:
  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    Row& r = row();
    put_and_mark(offset, src, n, [&] { marks_.mark(offset, n); });
    add(r.stores, 1);
    add(r.stored_bytes, n);
  }

  void store_words(std::uint64_t base, std::span<const WordStore> words) noexcept override {
    // The words may lie anywhere, and a store takes less time than its cache miss: with 16 lines
    // on their way the misses overlap.
    constexpr std::size_t ahead = 16;
    const std::size_t n = words.size();
    for (std::size_t i = 0; i < n; ++i) {
      __builtin_prefetch(address(base + words[std::min(i + ahead, n - 1)].offset), 1);
      const std::uint64_t at = base + words[i].offset;
      put_and_mark(at, &words[i].value, sizeof words[i].value,
                   [&] { marks_.mark_line(at / line_bytes); });
    }
    Row& r = row();
    add(r.stores, n);
    add(r.stored_bytes, n * sizeof(std::uint64_t));
  }

  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    assert(offset % line_bytes == 0 && n % line_bytes == 0 && allocated(offset, n));
    hardware().step(Step::stream);
    hardware().put_past(offset, src, n);
    count_streamed(row(), n);
  }

  void append(const RingMap& ring, std::uint64_t pos, const void* src,
              std::size_t n) noexcept override {
    const std::uint64_t at = ring_index(ring, pos);
    assert(at % line_bytes == 0 && n % line_bytes == 0 && n <= ring.bytes &&
           allocated_in(ring, at, n));
    hardware().step(Step::stream);
    hardware().put_past_ring(ring, at, src, n);
    count_streamed(row(), n);
  }

  void flush(std::uint64_t offset, std::size_t n) noexcept override {
    if (n == 0 || hardware().leave_out("flush", __builtin_return_address(0))) return;
    const std::uint64_t first = offset / line_bytes, count = lines_touched(offset, n);
    const Mine mine(*this);
    // mutant: in-flight-mark-before-write-back-step
    hardware().step(Step::take);
    // Before the write-back: MARK-2.
    // mutant: in-flight-mark-before-write-back
    for (std::uint64_t l = first; l < first + count; ++l) marks_.start(l, mine);
    // mutant: in-flight-mark-before-write-back-late
    write_back(mine.row, first, count);
  }

  void flush_lines(std::uint64_t base, std::span<const std::uint64_t> lines) noexcept override {
    if (lines.empty() || hardware().leave_out("flush_lines", __builtin_return_address(0))) return;
    const std::uint64_t from = base / line_bytes;
    const Mine mine(*this);
    hardware().step(Step::take);
    // All marks come before the first write-back, because a locked instruction would wait for it.
    for (const std::uint64_t l : lines) marks_.start(from + l, mine);
    each_run(lines, [&](std::uint64_t first, std::uint64_t count) {
      write_back(mine.row, from + first, count);
    });
  }

  void flush_ring(const RingMap& ring, std::uint64_t pos, std::size_t n) noexcept override {
    if (n == 0 || hardware().leave_out("flush_ring", __builtin_return_address(0))) return;
    const std::uint64_t at = pos % ring.bytes, whole = ring.bytes / line_bytes,
                        begin = ring.offset / line_bytes;
    const std::uint64_t first = at / line_bytes, count = lines_touched(at, n);
    const Mine mine(*this);
    hardware().step(Step::take);
    for (std::uint64_t l = first; l < first + count; ++l) marks_.start(begin + l % whole, mine);
    hardware().step(Step::write_back);
    hardware().write_back_ring(ring, first * line_bytes, count);
    count_flushed(mine.row, count);
    const std::uint64_t before_end = std::min(count, whole - first);
    hardware().charge(begin + first, before_end);
    if (before_end != count) hardware().charge(begin, count - before_end);
  }

  Status fence() noexcept override {
    if (hardware().leave_out("fence", __builtin_return_address(0))) return {};
    // The count comes before the wait (MARK-3). It would be slower after the fence, too: a store
    // there waits for the fence in the processor's store buffer.
    begin_fence(row());
    hardware().step(Step::fence);
    return hardware().wait(false);
  }

  Status flush_all() noexcept override {
    if (hardware().leave_out("flush_all", __builtin_return_address(0))) return {};
    const std::lock_guard one_at_a_time(flush_all_mutex_);  // MARK-4
    const bool one = hardware().flush_all_is_one();
    const int slot = base::thread_slot();
    Row& mine = row_of(slot);
    const auto over = [&](LineMarks::Mark mark) {
      const int of = LineMarks::slot_of(mark);
      // mutant: flush-all-unfenced-lines-power-cut
      if (of == slot) return true;  // MARK-5
      // The acquire pairs with the release in begin_fence(): MARK-3.
      // mutant: fence-begun-is-not-over
      return LineMarks::over(mark, row_of(of).fences.load(std::memory_order_acquire));
    };
    marks_.take_all(
        over,
        [&](std::uint64_t first, std::uint64_t count) {
          hardware().step(Step::write_back);
          hardware().write_back(first, count);
          count_flushed(mine, count);
          if (!one) hardware().charge(first, count);
        },
        [this] { hardware().step(Step::take); });
    if (one) hardware().charge(0, 1);
    hardware().step(Step::fence);
    // Every store made before this call is durable before the caller reports anything durable
    // (MARK-4).
    // mutant: flush-all-fence
    if (Status s = hardware().wait(true); !s.ok()) return s;
    return hardware().sync_metadata();
  }

 protected:
  MarkedMedium() = default;

  /// Reserves marks for the log range and a data region of at most `max_data_bytes`; call it before
  /// map_all().
  Status init_marks(std::uint64_t max_data_bytes) {
    if (Status s = marks_.reserve(path_, log_bytes_ + max_data_bytes); !s.ok()) return s;
    return marks_.cover(path_, log_bytes_);
  }
  [[nodiscard]] std::byte* address(std::uint64_t offset) const noexcept {
    return offset < log_bytes_ ? log_ + offset : data_ + (offset - log_bytes_);
  }
  static void count_streamed(Row& r, std::size_t n) noexcept {
    add(r.streamed_lines, n / line_bytes);
    add(r.written_bytes, n);
  }

 private:
  [[nodiscard]] Hardware& hardware() noexcept { return static_cast<Hardware&>(*this); }

  /// The calling thread, and the mark of a line whose write-back it starts now.
  struct Mine {
    explicit Mine(const MarkedMedium& medium) noexcept
        : slot(base::thread_slot()), row(medium.row_of(slot)) {}
    LineMarks::Mark operator()() const noexcept {
      // Relaxed: it is the thread's own count.
      return LineMarks::in_flight(slot, row.fences.load(std::memory_order_relaxed));
    }
    const int slot;
    Row& row;
  };
  template <class Mark>
  [[gnu::always_inline]] void put_and_mark(std::uint64_t offset, const void* src, std::size_t n,
                                           Mark&& mark) noexcept {
    assert(allocated(offset, n));
    hardware().step(Step::store);
    // mutant: dirty-mark-after-data
    hardware().put(offset, src, n);
    // mutant: dirty-mark-after-data-step
    hardware().step(Step::mark);
    // mutant: dirty-mark-after-data-late
    mark();
  }
  static void begin_fence(Row& r) noexcept {
    // pairs with the acquire in flush_all()
    r.fences.store(r.fences.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void write_back(Row& r, std::uint64_t first, std::uint64_t count) noexcept {
    hardware().step(Step::write_back);
    hardware().write_back(first, count);
    count_flushed(r, count);
    hardware().charge(first, count);
  }
  static void count_flushed(Row& r, std::uint64_t lines) noexcept {
    add(r.flushed_lines, lines);
    add(r.written_bytes, lines * line_bytes);
  }
  Status mapped(std::uint64_t from, std::uint64_t to) final {
    hardware().covered(from, to);
    return marks_.cover(path_, log_bytes_ + to);
  }

  LineMarks marks_;
  std::mutex flush_all_mutex_;
};

}  // namespace perdure::medium
