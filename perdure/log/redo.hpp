// SPDX-License-Identifier: BSD-3-Clause
//
// Redo: applies records' entries to home, for Reproduce by replay (DudeTM section 3.4) and for
// recovery (3.5), and the recovery of redo rings itself. Plain functions of a medium: no threads
// but those that a call starts and ends, no global state.
//
// Crash invariants: D1 entries are applied in id order; D2 everything applied is flushed and fenced
// before `applied` says so.
// D3 applying again, over a home that is as new or newer, ends in the same state (values are whole
// words; heap ops see heap.hpp).
// D4 what recovery goes by is durable before anything rests on it: a process that was killed leaves
// stores that the next one sees, and that a power cut may still take back. So the records are
// fenced before home is touched, and a word of home that is right already is stored again.
// Thread safety: one thread an object.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/log/line_masks.hpp"
#include "perdure/log/progress.hpp"
#include "perdure/log/record.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/pool_file.hpp"

namespace perdure::log {

/// Stores words to home through the medium and remembers which lines to flush.
class HomeWriter final : public pool::HeapTarget {
 public:
  /// recovery: what is only read is stored and flushed too (D4). in_order: heap ops come in their
  /// order and home holds just what those before left: nothing is newer or torn, which they would
  /// else look around for, a dozen loads each (pool/heap_apply.hpp, "Replay").
  enum class Use : std::uint8_t { running, recovery, in_order };
  /// lines; running, without masks: one more, and their write-back is started
  static constexpr std::size_t batch = 4096;
  /// With `masks` lines are noted there, and their write-back is the caller's. In recovery each is
  /// written back once. Throws std::bad_alloc.
  HomeWriter(medium::Medium& medium, std::uint64_t max_home_bytes, Use use = Use::running,
             LineMasks* masks = nullptr);
  HomeWriter(const HomeWriter&) = delete;
  HomeWriter& operator=(const HomeWriter&) = delete;

  void words(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) {
    medium_.store(medium_.log_bytes() + offset, values, n * 8);
    touch(offset, n * 8);
  }
  /// Any entry of a redo record; `end` marks change nothing. False for an entry that lies outside
  /// home (only damage makes one).
  bool entry(const Entry& e);

  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override;
  void store(std::uint64_t offset, std::uint64_t value) override { words(offset, &value, 1); }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) | mask);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) & ~mask);
  }
  [[nodiscard]] bool replay() const noexcept override { return use_ != Use::in_order; }
  /// H4 (pool/heap.hpp): a span's zeroed bitmap before its directory word. A failed medium says so
  /// again at the caller's fence.
  void fence(std::uint64_t offset, std::uint64_t n) override {
    if (lent_ != nullptr)
      medium_.flush(medium_.log_bytes() + offset, n);  // all the others may wait
    else
      flush();
    (void)medium_.fence();
  }

  /// Starts the write-back of every line touched since the last call, if that is not the caller's.
  /// The caller fences.
  void flush() const;
  /// Leaves it to others instead: f(line's home offset) for each.
  template <class F>
  void hand_over(F&& f) const {
    each_touched([&](const std::vector<std::uint64_t>& lines) {
      for (const std::uint64_t line : lines) f(line * 64);
    });
  }

 private:
  static constexpr std::uint64_t line_bits = LineMasks::line_bits;

  void touch(std::uint64_t offset, std::uint64_t n) const {
    for (std::uint64_t line = offset >> line_bits, last = (offset + n - 1) >> line_bits;
         line <= last; ++line) {
      if (masks_ != nullptr) {
        masks_->note(line);
        continue;
      }
      if (!lines_.empty() && lines_.back() == line) continue;
      if (lines_.size() == batch) flush();
      lines_.push_back(line);
    }
  }
  // f(lines) for some at a time; then nothing is touched any more.
  template <class F>
  void each_touched(F&& f) const {
    if (masks_ != nullptr) return masks_->take_all(use_ == Use::recovery, f);
    if (!lines_.empty()) f(std::as_const(lines_));
    lines_.clear();
  }

  medium::Medium& medium_;
  const std::uint64_t max_home_bytes_;
  const Use use_;
  mutable std::vector<std::uint64_t> lines_;  // to be flushed; or in their place
  LineMasks own_;                             // recovery
  LineMasks* const lent_;                     // whoever lent them writes back
  LineMasks* const masks_;                    // either, or neither
};

/// Why a record can't be applied: it names what the pool does not have, or can't be unpacked.
Status strange_record(const medium::Medium& medium, std::uint64_t id);

/// What recovery of redo rings did.
struct RedoRecovery {
  std::uint64_t records = 0, transactions = 0, bytes = 0;
  std::uint64_t last_id = 0;  ///< the newest transaction that home now holds
};

/// Replays the rings of a pool that was not closed in order: scans each, refuses damage (law L10)
/// before home is touched, applies what lies above header.applied in id order, flushes, fences.
/// Under `prefix` stops at the first missing id. Does not write the header: until start_session
/// raises the epoch, a crash here only means recovering again.
Result<RedoRecovery> recover_redo(medium::Medium& medium, const pool::Header& header,
                                  const RecoveryPlan* plan = nullptr);

/// "POOL: ring 3", for messages.
std::string ring_name(const medium::Medium& medium, std::uint32_t ring);

}  // namespace perdure::log
