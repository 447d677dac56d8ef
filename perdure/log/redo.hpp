// SPDX-License-Identifier: BSD-3-Clause
//
// Redo: applies records' entries to home, for Reproduce by replay (DudeTM section 3.4) and for recovery (3.5), and the recovery of
// redo rings itself. Plain functions of a medium: no threads but those that a call starts and ends, no global state.
//
// Crash invariants: D1 entries are applied in id order; D2 everything applied is flushed and fenced before `applied` says so.
// D3 applying again, over a home that is as new or newer, ends in the same state (values are whole words; heap ops see heap.hpp).
// D4 what recovery goes by is durable before anything rests on it: a process that was killed leaves stores that the next one sees, and that
// a power cut may still take back. So the records are fenced before home is touched, and a word of home that is right already is stored again.
// Thread safety: one thread an object.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/log/progress.hpp"
#include "perdure/log/record.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/pool_file.hpp"

namespace perdure::log {

/// A bit for each line of home, a word a page: zero but while a HomeWriter uses it. Made once for many writers, whose own sorting of lines would take longer
/// than all else they do. Used by one writer at a time.
class LineMasks {
 public:
  /// For a home of so many bytes. Throws std::bad_alloc. Zeros that are not touched take no memory.
  std::uint64_t* fit(std::uint64_t home_bytes);
  static constexpr std::uint64_t page_bits = 12, line_bits = 6, lines_a_page = 64;

 private:
  struct Free {
    std::uint64_t bytes;
    void operator()(std::uint64_t* p) const noexcept;
  };
  std::unique_ptr<std::uint64_t[], Free> words_;
  std::uint64_t pages_ = 0;
};

/// Stores words to home through the medium and remembers which lines to flush.
class HomeWriter final : public pool::HeapTarget {
 public:
  enum class Use : std::uint8_t { running, recovery };  ///< recovery: what is only read is stored and flushed too (D4)
  static constexpr std::size_t batch = 4096;            ///< lines; running, without masks: one more, and their write-back is started
  /// With `masks`, and in recovery, lines are noted there, and written back when flush() is called: once each. Throws std::bad_alloc.
  HomeWriter(medium::Medium& medium, std::uint64_t max_home_bytes, Use use = Use::running, LineMasks* masks = nullptr);
  ~HomeWriter() {
    for (const std::uint64_t page : pages_) masks_[page] = 0;
  }
  HomeWriter(const HomeWriter&) = delete;
  HomeWriter& operator=(const HomeWriter&) = delete;

  void words(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) {
    medium_.store(medium_.log_bytes() + offset, values, n * 8);
    touch(offset, n * 8);
  }
  /// Any entry of a redo record; `end` marks change nothing. False for an entry that lies outside home (only damage makes one).
  bool entry(const Entry& e);

  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override;
  void store(std::uint64_t offset, std::uint64_t value) override { words(offset, &value, 1); }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override { store(offset, load(offset) | mask); }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override { store(offset, load(offset) & ~mask); }
  [[nodiscard]] bool replay() const noexcept override { return true; }
  /// H4 (pool/heap.hpp): a span's zeroed bitmap before its directory word. A failed medium says so again at the caller's fence.
  void fence() override {
    flush();
    (void)medium_.fence();
  }

  /// Starts the write-back of every line touched since the last call. The caller fences.
  void flush() const;
  /// Leaves it to others instead: f(line's home offset) for each.
  template <class F>
  void hand_over(F&& f) const {
    each_touched([&] {
      for (const std::uint64_t line : lines_) f(line * 64);
    });
  }

 private:
  static constexpr std::uint64_t line_bits = LineMasks::line_bits, lines_a_page = LineMasks::lines_a_page;

  void touch(std::uint64_t offset, std::uint64_t n) const {
    for (std::uint64_t line = offset >> line_bits, last = (offset + n - 1) >> line_bits; line <= last; ++line) {
      if (masks_ != nullptr) {
        std::uint64_t& mask = masks_[line / lines_a_page];
        if (mask == 0) pages_.push_back(line / lines_a_page);
        mask |= std::uint64_t{1} << line % lines_a_page;
        continue;
      }
      if (!lines_.empty() && lines_.back() == line) continue;
      if (lines_.size() == batch) flush();
      lines_.push_back(line);
    }
  }
  // f() for lines_ full after full; then nothing is touched any more.
  template <class F>
  void each_touched(F&& f) const;

  medium::Medium& medium_;
  const std::uint64_t max_home_bytes_;
  const Use use_;
  mutable std::vector<std::uint64_t> lines_;  // to be flushed
  // In their place, and the pages with any line.
  LineMasks own_;
  std::uint64_t* const masks_;
  mutable std::vector<std::uint64_t> pages_;
};

template <class F>
void HomeWriter::each_touched(F&& f) const {
  if (use_ == Use::recovery) std::sort(pages_.begin(), pages_.end());
  for (const std::uint64_t page : pages_) {
    if (lines_.size() + lines_a_page > batch) {
      f();
      lines_.clear();
    }
    for (std::uint64_t mask = std::exchange(masks_[page], 0); mask != 0; mask &= mask - 1)
      lines_.push_back(page * lines_a_page + static_cast<std::uint64_t>(std::countr_zero(mask)));
  }
  pages_.clear();
  if (!lines_.empty()) f();
  lines_.clear();
}

/// Why a record can't be applied: it names what the pool does not have, or can't be unpacked.
Status strange_record(const medium::Medium& medium, std::uint64_t id);

/// What recovery of redo rings did.
struct RedoRecovery {
  std::uint64_t records = 0, transactions = 0, bytes = 0;
  std::uint64_t last_id = 0;  ///< the newest transaction that home now holds
};

/// Replays the rings of a pool that was not closed in order: scans each, refuses damage (law L10) before home is touched, applies what lies
/// above header.applied in id order, flushes, fences. Under `prefix` stops at the first missing id. Does not write the header: until
/// start_session raises the epoch, a crash here only means recovering again.
Result<RedoRecovery> recover_redo(medium::Medium& medium, const pool::Header& header, const RecoveryPlan* plan = nullptr);

/// "POOL: ring 3", for messages.
std::string ring_name(const medium::Medium& medium, std::uint32_t ring);

}  // namespace perdure::log
