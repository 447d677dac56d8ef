// SPDX-License-Identifier: BSD-3-Clause
//
// Ring: a bounded log of records on a medium, written by one thread at a time, and its scan after a
// crash.
//
// Positions are bytes since the opening began, so a record's generation is part of its position.
// [head, tail) holds live records. In the first generation the ring's bytes are allocated as the
// tail reaches them (extent.hpp): a thread that promises space asks fits() and ready().
// Invariants:
// RING-1 A record is written only when the one before it is durable: each append() has its fence().
// RING-2 The head moves only after what lies below it is durable in the data region and the header
// says so (the caller publishes first).
// RING-3 Ids rise along a ring.
// Where someone else still reads the log (floors.hpp), a checkpoint releases less than it has
// copied: settled() is what it has copied, and decides when the next one is due; head() is what is
// released, and decides what fits.
// Thread safety: one thread at a time appends; any thread calls head, tail, used and fits; the
// checkpointer calls release.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/log/extent.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::log {

class Ring {
 public:
  static constexpr int samples = 64;

  void configure(medium::Medium& medium, const medium::RingMap& map, std::uint64_t seed) {
    medium_ = &medium;
    map_ = map;
    seed_ = seed;
    step_ = map.bytes / samples;
    next_sample_ = 0;
    extent_.configure(medium, map.offset, map.bytes);
  }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return map_.bytes; }
  /// The largest record in bytes: half the ring, so that one can be written while the one before it
  /// is checkpointed.
  [[nodiscard]] std::uint64_t max_record() const noexcept { return map_.bytes / 2; }
  // Acquire pairs with the release in fence() and release(): what lies below the position was
  // written before.
  [[nodiscard]] std::uint64_t head() const noexcept {
    return head_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t tail() const noexcept {
    return tail_.load(std::memory_order_acquire);
  }
  /// Returns tail - head as they are at one instant, so at most bytes(). Any thread may call it.
  [[nodiscard]] std::uint64_t used() const noexcept {
    std::uint64_t begin = 0, end = 0;
    // What was released had been appended before, so the acquire in head() makes this tail at least
    // that head. In the other order a checkpoint in between moves the head above the tail, and the
    // difference is about 2^64. The head never goes back: if it is the same before and after, it
    // was so when the tail was loaded. The acquire in tail() keeps the relaxed load behind it.
    do {
      begin = head();
      end = tail();
    } while (__builtin_expect(head_.load(std::memory_order_relaxed) != begin, 0));
    return end - begin;
  }
  /// Returns whether n more bytes fit; n <= bytes(). A commit calls it, so each position is loaded
  /// once: for any thread but the one that appends, the answer may be of an earlier tail, or of an
  /// earlier head.
  [[nodiscard]] bool fits(std::uint64_t n) const noexcept {
    // Acquire: pairs with the release in release(), so that what lay below may be overwritten, and
    // so that the tail is at least this head.
    const std::uint64_t begin = head_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_relaxed) + n - begin <= map_.bytes;
  }

  /// Returns whether the next n bytes are allocated (ALLOC-1).
  [[nodiscard]] bool ready(std::uint64_t n) const noexcept {
    return extent_.ready(tail_.load(std::memory_order_relaxed) + n);
  }
  /// Allocates them. `full`: the disk has no block left; nothing has changed.
  Status prepare(std::uint64_t n) { return extent_.extend(tail() + n); }
  /// The same for all bytes of the first generation below `position`.
  Status prepare_to(std::uint64_t position) { return extent_.extend(position); }
  /// The log's writer calls this between records, so that the next bytes are ready when it reaches
  /// them. The call is cheap.
  void prepare_ahead() noexcept { extent_.extend_ahead(tail()); }
  [[nodiscard]] const LogExtent& extent() const noexcept { return extent_; }

  /// Appends the writer's record: it is on its way to the medium, and durable after fence() with
  /// the position that this returns, the one after the record. Stores between the two calls cost
  /// nothing, whereas stores after the fence queue up behind it. Nothing else may be appended
  /// between them (RING-1).
  [[nodiscard]] [[gnu::always_inline]] std::uint64_t append(RecordWriter& writer, RecordKind kind,
                                                            std::uint64_t id,
                                                            std::uint32_t transactions) {
    const std::uint64_t position = tail_.load(std::memory_order_relaxed);
    const std::uint64_t n = writer.bytes();
    if (__builtin_expect(position >= next_sample_, 0)) sample(position);
    const std::uint64_t* record = writer.seal(kind, id, transactions, position);
    medium_->append(map_, position, record, n);
    last_id_ = id;  // after a failure nothing is appended any more
    return position + n;
  }
  /// Makes the appended record, which ends at `end`, durable with the medium's one fence. After a
  /// failure the record's state is unknown, and the pool is poisoned.
  [[gnu::always_inline]] Status fence(std::uint64_t end) {
    // mutant: ring-tail-before-fence
    // mutant: fence-of-commit-record, fence-of-group-record, fence-of-undo-record
    // mutant: fence-of-rollback-record
    Status status = medium_->fence();
    if (__builtin_expect(!status.ok(), 0)) return status;
    // mutant: ring-tail-before-fence-late
    // Release: pairs with the acquire in tail(). What lies below is durable.
    tail_.store(end, std::memory_order_release);
    return status;
  }
  Status append_fence(RecordWriter& writer, RecordKind kind, std::uint64_t id,
                      std::uint32_t transactions) {
    return fence(append(writer, kind, id, transactions));
  }

  /// Returns the position of the first record with an id above `id` (the tail where there is none).
  /// The ring's owner may append meanwhile. Headers are read from the nearest sample on.
  [[nodiscard]] std::uint64_t position_after(std::uint64_t id) const noexcept {
    const std::uint64_t end = tail();
    std::uint64_t best = head();
    for (const Sample& s : sample_) {
      // Acquire pairs with the release in sample(): a sample's id is read whole.
      const std::uint64_t position = s.position.load(std::memory_order_acquire);
      if (position > best && s.last_id.load(std::memory_order_acquire) <= id &&
          s.position.load(std::memory_order_relaxed) == position)
        best = position;
    }
    while (best < end && at(best).id() <= id) best += at(best).bytes(medium_->append_unit());
    return best;
  }
  /// RING-2: everything below `position` may be overwritten.
  // Release: pairs with the acquire in fits() and head().
  void release(std::uint64_t position) noexcept {
    head_.store(position, std::memory_order_release);
  }
  /// The data region and the header have what lies below `position`, which is at least the head.
  void settle(std::uint64_t position) noexcept {
    // Release: pairs with the acquire in unsettled(), for the tail.
    settled_.store(position, std::memory_order_release);
  }
  /// Returns the position up to which a checkpoint has copied. Any thread may call it: a hint.
  [[nodiscard]] std::uint64_t settled() const noexcept {
    return settled_.load(std::memory_order_relaxed);
  }
  /// Returns how many bytes lie above that.
  [[nodiscard]] std::uint64_t unsettled() const noexcept {
    // The tail never falls below what has been settled: loaded after it, it is at least as high.
    const std::uint64_t from = settled_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_relaxed) - from;
  }

  [[nodiscard]] RecordView at(std::uint64_t position) const noexcept {
    return {reinterpret_cast<const std::uint64_t*>(map_.base + position % map_.bytes), position};
  }
  [[nodiscard]] medium::Medium& medium() const noexcept { return *medium_; }

 private:
  struct Sample {
    std::atomic<std::uint64_t> position{0}, last_id{0};
  };
  void sample(std::uint64_t position) noexcept {
    Sample& s = sample_[position / step_ % samples];
    s.position.store(0, std::memory_order_relaxed);
    s.last_id.store(last_id_, std::memory_order_release);
    // Pairs with the acquire in position_after().
    s.position.store(position, std::memory_order_release);
    next_sample_ = (position / step_ + 1) * step_;
  }

  medium::Medium* medium_ = nullptr;
  LogExtent extent_;
  medium::RingMap map_;
  std::uint64_t seed_ = 0, step_ = 1, next_sample_ = 0, last_id_ = 0;
  alignas(128) std::atomic<std::uint64_t> tail_{0};
  alignas(128) std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> settled_{0};
  Sample sample_[samples];
};

/// The result of a scan.
struct Scan {
  std::uint64_t end = 0;  ///< position after the last whole record
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  // scan_and_flush_ring alone says what follows.
  std::uint64_t last_id = 0;  ///< of the last whole record; 0 if there is none
  // Of the records above the given id, which are the last ones (RING-3).
  std::uint64_t above = 0;  ///< position of the first one; `end` if there is none
  std::uint64_t records_above = 0, bytes_above = 0;
  /// `corrupt` when a broken record lies below a whole one (LAW-10).
  Status damage;
};

/// Starts the write-back of what a scan found in the ring at `offset` of the log. The caller fences
/// before it changes the data region: a process that was killed may have left its last records
/// visible only, and a power cut would lose them while the data region already holds a part of what
/// they say.
void flush_scanned(medium::Medium& medium, std::uint64_t offset, std::uint64_t ring_bytes,
                   std::uint64_t head, std::uint64_t end);

/// COPY-1: a place in a ring is written again only after the header has released it. So where a
/// scan from the header's `head` ended at `end`, no place above that holds a record of a later
/// generation with an id above `above_id`, the highest that the header or the scan knows. Such a
/// record proves that log and header were not read at one time: the file was copied while a program
/// wrote the pool. Returns `corrupt` then. The search covers up to 65,536 later generations.
[[nodiscard]] Status later_than_header(const medium::RingMap& map, std::uint64_t head,
                                       std::uint64_t end, std::uint64_t seed, std::size_t unit,
                                       std::uint64_t above_id, const std::string& name);

/// Calls f(RecordView) for each whole record from `head` on, in ring order. A plain function of the
/// bytes: it has no threads and no state. `name` is for messages ("POOL: ring 3").
Scan scan_ring(const medium::RingMap& map, std::uint64_t head, std::uint64_t seed, std::size_t unit,
               const std::string& name, const std::function<void(const RecordView&)>& f);

/// Does scan_ring with `parts` threads, each on a part of the ring, and flush_scanned. The result
/// says where the records above `above_id` begin. A thread that begins inside the ring looks for
/// the first whole record; its position is part of what the checksum covers. The caller's thread
/// calls `passed` with about how many bytes of the ring were scanned. Each thread calls `found`, if
/// it is not empty, with the records above `above_id` of its part: with all that the result counts,
/// and maybe with bytes inside a record that look like one. The caller fences: the other threads
/// have fenced what they wrote back. Throws std::bad_alloc.
Scan scan_and_flush_ring(medium::Medium& medium, const medium::RingMap& map, std::uint64_t head,
                         std::uint64_t seed, std::size_t unit, const std::string& name,
                         std::uint64_t above_id, unsigned parts,
                         const std::function<void(std::uint64_t)>& passed,
                         const std::function<void(const RecordView&)>& found = {});

}  // namespace perdure::log
