// SPDX-License-Identifier: BSD-3-Clause
//
// Redo: applies records' entries to the data region, for replay (DudeTM section 3.4) and for
// recovery (3.5), and recovers the redo rings themselves. These are plain functions of a medium:
// they use no threads except those that a call starts and ends, and no global state.
//
// Crash invariants:
// REDO-1 Entries are applied in id order, word by word: of two that change the same word, and of
// two that change the heap, the later one is applied later.
// REDO-2 Everything applied is flushed and fenced before the checkpoint id says so.
// REDO-3 Applying again, over a data region that is as new or newer, ends in the same state (values
// are whole words; for heap ops see heap.hpp).
// REDO-4 What recovery relies on is durable before anything rests on it: a process that was killed
// leaves stores that the next one sees, and that a power cut may still undo. So the records are
// fenced before the data region is changed, and a word of the data region that is right already is
// stored again.
// Thread safety: an object belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/log/line_masks.hpp"
#include "perdure/log/progress.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/replayed_checksums.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::log {

/// Stores words to the data region through the medium and remembers which lines to flush.
class DataWriter final : public pool::HeapTarget {
 public:
  /// recovery: words that are only read are stored and flushed too (REDO-4). in_order: heap ops
  /// arrive in their order and the data region holds exactly what the earlier ones left. Nothing is
  /// newer or torn, so the check for that, a dozen loads each, is omitted (pool/heap_apply.hpp,
  /// "Replay").
  enum class Use : std::uint8_t { running, recovery, in_order };
  /// In lines. `running` without masks: one line more starts the write-back of these.
  static constexpr std::size_t batch = 4096;
  /// With `masks`, lines are noted there, and the caller writes them back. In recovery each line is
  /// written back once. `sums` is told of each word before it is stored. Throws std::bad_alloc.
  DataWriter(medium::Medium& medium, const pool::Directory& directory, Use use = Use::running,
             LineMasks* masks = nullptr, ReplayedChecksums* sums = nullptr);
  DataWriter(const DataWriter&) = delete;
  DataWriter& operator=(const DataWriter&) = delete;

  void words(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) {
    if (sums_ != nullptr) sums_->replace(offset, values, n);
    medium_.store(medium_.log_bytes() + offset, values, n * 8);
    touch(offset, n * 8);
  }
  /// Stores single words in their order; offsets count from the data region's beginning.
  void words(std::span<const medium::WordStore> list) {
    if (sums_ != nullptr) {  // of two stores to one word, the second one replaces the first
      for (const medium::WordStore& w : list) words(w.offset, &w.value, 1);
      return;
    }
    medium_.store_words(medium_.log_bytes(), list);
    if (masks_ != nullptr) return masks_->note(list);
    for (const medium::WordStore& w : list) touch(w.offset, 8);
  }
  /// Applies any entry of a redo record; `end` marks change nothing. Returns false for an entry
  /// that lies outside the data region (only damage makes one).
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
  /// HEAP-4 (pool/heap.hpp): a span's zeroed bitmap is durable before its directory word. A failed
  /// medium fails again at the caller's fence.
  void fence(std::uint64_t offset, std::uint64_t n) override {
    if (lent_ != nullptr)
      medium_.flush(medium_.log_bytes() + offset, n);  // the caller writes all other lines back
    else
      flush();
    (void)medium_.fence();
  }

  /// Starts the write-back of every line touched since the last call, unless the masks are the
  /// caller's. The caller fences.
  void flush() const;
  /// Leaves the write-back to the caller instead: calls f(the line's offset) for each line.
  template <class F>
  void hand_over(F&& f) const {
    each_touched([&](const std::vector<std::uint64_t>& lines) {
      for (const std::uint64_t line : lines) f(line * 64);
    });
  }

 private:
  static constexpr std::uint64_t line_bits = LineMasks::line_bits;

  // Another process may have stored what replay finds as it should be, and not the checksums
  // (CHECKSUM-2): all that replay looks at counts as stored to.
  void looked_at(const pool::HeapOp& op) const;
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
  // Calls f(lines) for up to 4,096 lines at a time. Afterwards no line counts as touched.
  template <class F>
  void each_touched(F&& f) const {
    if (masks_ != nullptr) return masks_->take_all(use_ == Use::recovery, f);
    if (!lines_.empty()) f(std::as_const(lines_));
    lines_.clear();
  }

  medium::Medium& medium_;
  const pool::Directory directory_;
  const Use use_;
  mutable std::vector<std::uint64_t> lines_;  // to be flushed, where there are no masks
  LineMasks own_;                             // recovery
  LineMasks* const lent_;                     // the caller's, which writes them back
  LineMasks* const masks_;                    // own_, lent_ or none
  ReplayedChecksums* const sums_;             // null: the pool has none, or it is not recovery
};

/// Why a record can't be applied: it names what the pool does not have, or it can't be unpacked.
Status strange_record(const medium::Medium& medium, std::uint64_t id);

/// The result of a recovery of redo rings.
struct RedoRecovery {
  std::uint64_t records = 0, transactions = 0, bytes = 0;
  std::uint64_t last_id = 0;  ///< the newest transaction that the data region now holds
};

/// Replays the rings of a pool that was not closed: scans each, refuses damage (LAW-10) before the
/// data region is changed, applies what lies above header.checkpoint_id in id order, flushes and
/// fences. In the pipelined order a missing id is damage too. It does not write the header: until
/// start_session raises the epoch, a crash only means that recovery runs again.
Result<RedoRecovery> recover_redo(medium::Medium& medium, const pool::Header& header,
                                  const RecoveryPlan* plan = nullptr);

/// Calls f(record) for each whole record of the pool's redo rings with an id above `id`, in id
/// order. Changes nothing. For a pool without dependent records, after its recovery and before the
/// session empties the rings: its records are those that recovery has applied, and older ones.
/// Returns `corrupt` as recovery does. Throws what f throws, and std::bad_alloc.
Status each_record_above(medium::Medium& medium, const pool::Header& header, std::uint64_t id,
                         const std::function<void(const RecordView&)>& f);

/// "POOL: ring 3", for messages.
std::string ring_name(const medium::Medium& medium, std::uint32_t ring);

}  // namespace perdure::log
