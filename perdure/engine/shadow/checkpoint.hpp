// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint: copies the lines that differ from the shadow to the data region, in slices, beside
// running transactions. Then the caller publishes the checkpoint id X and truncates the log.
//
//   1. X is an id up to which every transaction has finished its commit (strict order) or is
//      durable (pipelined order).
//   2. First the heap's directory, then the rest, in batches: take the marks of some pages, then
//      copy their marked lines as the TM allows (tm::copy). That copies what committed transactions
//      wrote, and nothing else.
//   3. Pipelined order: read the clock c after a batch was copied. The batch may hold the writes of
//      transactions up to c, so it waits in DRAM until all of them are durable. When
//      max_waiting_bytes wait there, no more is copied. Strict order: isolation lasts through the
//      fence, so what can be copied is durable.
//   4. Wait for readers in other processes, for a bounded time, and tell them up to which id the
//      data region has effects from now on (reader_gate.hpp, READER-1). Write the batch to the
//      data region by non-temporal stores. The directory's lines come last, after a fence: the data
//      region never names a span whose zeroed bitmap it does not hold (HEAP-4, pool/heap.hpp).
//      Where pages have checksums, the data region is marked as changing before the first batch
//      (CHECKSUM-1), and a batch changes those of its pages (CHECKSUM-3).
//   5. After the last batch: fence (the data region is durable), persist X and the rings' heads in
//      the header (fences), and only then truncate the rings.
// CKPT-1 The data region never holds an effect of a transaction that is not durable (3).
// CKPT-2 When the header says X, the data region holds every transaction up to X: what had finished
// by X had set its marks (SHADOW-1) before marks were taken (1, 2).
// CKPT-3 A ring is truncated only after the data region and the header are durable (5). Otherwise a
// record's only copy could be lost, or an older record in another ring would revert a newer one.
// A crash before 5 finds the old X in the header, and replay over a newer data region is idempotent
// (REDO-3).
// Source: fuzzy checkpoints (Hagmann, IEEE ToC '86); retiring from DRAM instead of from the log
// (SoftWrAP, MSST '15).
// Errors: slice() and start() throw std::bad_alloc with nothing lost: call again.
// Thread safety: one slice at a time (the caller's lock).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "perdure/base/room.hpp"
#include "perdure/base/status.hpp"
#include "perdure/engine/shadow/reader_gate.hpp"
#include "perdure/engine/shadow/resident.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/page_checksums.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::shadow {

class Checkpoint {
 public:
  enum class Step : std::uint8_t {
    idle,     ///< no checkpoint is in progress
    more,     ///< call again
    waiting,  ///< the oldest batch needs durable ids up to needs()
    copied    ///< the data region has everything: finish the checkpoint
  };

  /// `resident`: is told which pages have marks; null where the shadow has no limit. `gate`: for
  /// readers in other processes; null where there can be none.
  Checkpoint(medium::Medium& medium, Marks& marks, const std::byte* view,
             const pool::Header& header, Resident* resident, ReaderGate* gate)
      : medium_(medium),
        marks_(marks),
        view_(view),
        resident_(resident),
        gate_(gate),
        words_(header),
        published_(header.checkpoint_id) {
    if (!pool::PageChecksums::has(header)) return;
    sums_.emplace(medium, header);
    change_.emplace(*sums_);
  }

  [[nodiscard]] bool active() const noexcept { return active_; }
  [[nodiscard]] std::uint64_t checkpoint_id() const noexcept { return x_; }
  [[nodiscard]] std::uint64_t needs() const noexcept {
    return !batches_.empty()     ? batches_.front().clock
           : !directory_.empty() ? directory_.back().clock
                                 : 0;
  }
  /// Returns the number of lines copied so far. Any thread may call it.
  [[nodiscard]] std::uint64_t lines() const noexcept {
    return lines_.load(std::memory_order_relaxed);
  }
  /// Returns the size in bytes of the lines that wait in DRAM.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return waiting_lines_ * 64; }
  /// The maximum that waits in DRAM, beside the heap's directory (1/8192 of the pool's largest
  /// size).
  static constexpr std::uint64_t max_waiting_bytes = std::uint64_t{16} << 20;
  [[nodiscard]] std::size_t pages_left() const noexcept { return pages_.size() - next_page_; }

  void start(std::uint64_t x) {
    look_for(true);
    active_ = true;
    x_ = x;
    in_directory_ = true;
    marked_ = !sums_;
  }

  /// Copies up to `max_pages` pages. `tm` is the caller's object of the TM, which runs no
  /// transaction. `clock()` returns the last id drawn, `durable()` the id up to which every
  /// transaction is durable. `strict`: what can be copied is durable already, and durable() is 0
  /// once the medium has failed. The caller fences after every slice.
  template <class Tm, class Clock, class Durable>
  Step slice(Tm& tm, std::size_t max_pages, bool strict, Clock&& clock, Durable&& durable) {
    if (!active_) return Step::idle;
    if (next_page_ == pages_.size()) the_rest();
    if (next_page_ < pages_.size()) {
      // A line whose mark is taken must be copied, or X would pass what the data region lacks: no
      // allocation may fail between the two.
      auto& batches = in_directory_ ? directory_ : batches_;
      base::make_room(batches, 1);
      if (change_) change_->reserve(max_pages);
      Batch batch = std::exchange(spare_, {});
      batch.room_for_a_page();
      const auto room = [&] {  // for one more page
        return in_directory_ ||
               (waiting_lines_ + batch.offsets.size() + 64) * 64 <= max_waiting_bytes;
      };
      tm::copy(
          tm,
          [&] {
            for (std::size_t n = 0;
                 n < max_pages && next_page_ < pages_.size() && room() && batch.try_room();
                 ++n, ++next_page_) {
              if (resident_ != nullptr) resident_->note_marked(pages_[next_page_]);
              marks_.take(pages_[next_page_],
                          [&](std::uint64_t offset) { batch.offsets.push_back(offset); });
            }
          },
          [&](auto&& line) {
            // Lines that were stored to long ago are in no cache.
            constexpr std::size_t ahead = 8;
            const std::size_t n = batch.offsets.size();
            batch.lines.resize(n * 8);
            for (std::size_t i = 0; i < n; ++i) {
              if (i + ahead < n) {
                __builtin_prefetch(view_ + batch.offsets[i + ahead]);
                if (sums_) __builtin_prefetch(medium_.data() + batch.offsets[i + ahead], 0, 2);
              }
              line(batch.lines.data() + i * 8, view_ + batch.offsets[i]);
            }
          });
      batch.newest = clock();
      batch.clock = strict ? 1 : batch.newest;
      lines_.fetch_add(batch.offsets.size(), std::memory_order_relaxed);
      if (!in_directory_) waiting_lines_ += batch.offsets.size();
      if (!batch.offsets.empty())
        batches.push_back(std::move(batch));
      else
        spare_ = std::move(batch);
      if (next_page_ == pages_.size()) the_rest();
    }
    bool wrote = false;
    const auto mark = [&] {  // the caller fences before the first batch is written
      // mutant: checksum-checkpoint-marks
      sums_->mark(published_);
      marked_ = true;
      return Step::more;
    };
    if (!marked_ && !batches_.empty() && batches_.front().clock <= durable()) return mark();
    // mutant: batch-waits-durable
    while (!batches_.empty() && batches_.front().clock <= durable()) {
      write(batches_.front());
      waiting_lines_ -= batches_.front().offsets.size();
      // The next slice uses its memory: asking the system for it anew costs as much as filling it.
      spare_ = std::move(batches_.front());
      spare_.offsets.clear();
      spare_.lines.clear();
      batches_.erase(batches_.begin());
      wrote = true;
    }
    if (next_page_ < pages_.size() && (waiting_lines_ + 64) * 64 <= max_waiting_bytes)
      return Step::more;
    if (!batches_.empty()) return Step::waiting;
    if (directory_.empty()) return Step::copied;
    // mutant: directory-waits-durable
    if (directory_.back().clock > durable()) return Step::waiting;
    // The caller fences first: all that the directory names is then in the data region.
    // mutant: directory-after-targets
    if (wrote) return Step::more;
    if (!marked_) return mark();
    for (const Batch& batch : directory_) {
      if (sums_)
        sums_->forget_freed(batch.offsets.data(), batch.offsets.size(), batch.lines.data(), view_);
      write(batch);
    }
    directory_.clear();
    return Step::copied;
  }
  /// The data region is durable up to checkpoint_id(): the caller has fenced and published.
  void finished() noexcept {
    active_ = false;
    // The data region was fenced. If the header's id is as before, the mark must go, or an opening
    // would take this checkpoint for one that was interrupted.
    if (sums_ && marked_ && x_ == published_) sums_->unmark();
    published_ = x_;
  }

 private:
  struct Batch {
    std::uint64_t clock = 0;   // the durable id that it waits for
    std::uint64_t newest = 0;  // it has effects of transactions up to this id
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint64_t> lines;  ///< 8 words each

    void room_for_a_page() {
      const std::size_t n = offsets.size() + 64;
      if (offsets.capacity() < n) offsets.reserve(n * 2);
      if (lines.capacity() < n * 8) lines.reserve(n * 16);
    }
    // Without this memory the batch ends early.
    bool try_room() noexcept {
      try {
        room_for_a_page();
        return true;
      } catch (const std::bad_alloc&) {
        return false;
      }
    }
  };
  // Lists the marked pages of the directory (HEAP-4), or all other marked pages. If the data region
  // grows into a new section during a checkpoint, the next checkpoint copies that section's
  // directory.
  void look_for(bool of_directory) {
    std::vector<std::uint64_t> found;
    const std::uint64_t end = medium_.data_bytes() / 4096;
    const auto look = [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t page = from; page < std::min(to, end); ++page)
        if (marks_.any(page)) found.push_back(page);
    };
    std::uint64_t objects = 0;  // the first page behind the last run of directory words
    words_.each_run_of_words(medium_.data_bytes(), [&](std::uint64_t from, std::uint64_t to) {
      constexpr std::uint64_t pages = pool::chunk_bytes / 4096;
      of_directory ? look(from * pages, to * pages) : look(objects, from * pages);
      objects = to * pages;
    });
    if (!of_directory) look(objects, end);
    pages_.swap(found);
    next_page_ = 0;
  }
  // Called once the directory is copied, not before: whatever it names was marked by then.
  void the_rest() {
    if (!in_directory_) return;
    look_for(false);  // including what has grown meanwhile
    in_directory_ = false;
  }
  void write(const Batch& batch) {
    // READER-1
    // mutant: checkpoint-tells-readers
    if (gate_ != nullptr) gate_->pass(batch.newest);
    if (change_) change_->prepare(batch.offsets.data(), batch.offsets.size(), batch.lines.data());
    const std::uint64_t data = medium_.log_bytes();
    for (std::size_t i = 0; i < batch.offsets.size();) {
      std::size_t j = i + 1;  // neighbouring lines are written in one call
      while (j < batch.offsets.size() && batch.offsets[j] == batch.offsets[j - 1] + 64) ++j;
      medium_.stream(data + batch.offsets[i], batch.lines.data() + i * 8, (j - i) * 64);
      i = j;
    }
    if (change_) change_->publish();
  }

  medium::Medium& medium_;
  Marks& marks_;
  const std::byte* view_;
  Resident* const resident_;
  ReaderGate* const gate_;
  const pool::Directory words_;
  std::optional<pool::PageChecksums> sums_;  // none: the pool has no checksums
  std::optional<pool::PageChecksums::Change> change_;
  std::uint64_t published_;  // the checkpoint id that the header has
  bool marked_ = true;       // CHECKSUM-1, of the checkpoint in progress
  bool active_ = false, in_directory_ = false;
  std::uint64_t x_ = 0;
  std::atomic<std::uint64_t> lines_{0};
  std::vector<std::uint64_t> pages_;
  std::size_t next_page_ = 0;
  std::vector<Batch> batches_, directory_;
  std::uint64_t waiting_lines_ = 0;  // in batches_
  Batch spare_;
};

}  // namespace perdure::engine::shadow
