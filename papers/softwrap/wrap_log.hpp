// SPDX-License-Identifier: BSD-3-Clause
//
// WrapLog: one thread's redo log of wraps (papers: SoftWrAP, MSST '15, sections III, IV and IV-C),
// and its scan after a crash.
//
// A log is divided into buckets. A wrap lies in one of them, and wraps lie one after the other;
// entries are streamed line by line as the wrap stores, and its close is durable by one fence. The
// owner decides about a bucket: when the data region durably holds all of its wraps and the
// checkpoint id X says so, the bucket begins again, with a new base.
// On the medium: a line of control, then the buckets. Control has the epoch whose log it is; X: the
// data region holds all logs' wraps up to this id, in the first log; each bucket's base: ids are
// counted from there, and the checksums of its wraps are bound to it. Words: log/control_word.hpp.
// Crash invariants:
//   WRAPLOG-1 A wrap's lines are durable when close() returns: one fence. The wrap before it in the
//             log was durable before its own first line was streamed, or was never closed: so of
//             what a crash leaves of a bucket, only what follows the last whole wrap may be torn.
//   WRAPLOG-2 A bucket's base is durable before any of its wraps is streamed; it is above each id
//             that the bucket had before, so no earlier wrap is taken for one of the present base.
//   WRAPLOG-3 A base is not written before the data region holds, durably and by X, every wrap that
//             the bucket had.
// Damage (LAW-10), rule WRAP-1: what follows the last whole wrap is damage, not a torn wrap, where
// wraps follow that agree with their sums and checks in 96 bits together, one wrap directly after
// the other. A wrap contributes 32 bits of its close, and 64 or 32 of its check.
//   No false alarm. By WRAPLOG-1 and WRAPLOG-2 a crash leaves one line after the end that was
//   written as the last line of a wrap of this base: that of the wrap that begins at the end, and
//   the rule excludes it. So each bit that agrees is one of a sum, seeded by pool, session, log,
//   bucket and base, against bits that were written without it. The wraps that end with a given
//   line are known from the line's own close, their predecessor's close, and so on: for each line
//   there is one such run. The chance of an alarm is therefore at most (lines of all logs) * 2^-96
//   for a recovery, which is below 2^-60 for logs of less than 2^36 lines (4 TiB). Of one close's
//   32 bits alone it would be 2^-14 for 16 MiB.
//   What is missed. Damage in the last wrap can't be told from a torn one. Nor can damage in front
//   of the last wrap or two, where these left no space for 64 bits: 12 n + 8 bytes leave 8 free
//   except for n = 10 and n = 15 modulo 16. Logs of the first form have no checks: there three
//   wraps must follow.
// A torn wrap is taken for a whole one with a chance of 2^-32 for each line whose close says the
// right number of lines, and of 2^-96 where the line is parsed to a check.
// Cost: a scan sums each line of a bucket at most once, and again as the last line of a wrap and
// for its check. A bucket's bytes are allocated as wraps first reach them (extent.hpp).
// Thread safety: none of its own; any thread may call used().
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "papers/names.hpp"
#include "papers/softwrap/wrap_record.hpp"
#include "papers/softwrap/wrap_sum.hpp"
#include "perdure/base/status.hpp"
#include "perdure/log/control_word.hpp"
#include "perdure/log/extent.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::papers::softwrap {

/// Where a log lies, and which pool and session it belongs to.
struct WrapPlace {
  std::uint64_t offset = 0, bytes = 0;  ///< in the log range, multiples of 64
  std::uint64_t identity = 0;           ///< bound to pool and log: ring_seed of epoch 0
  std::uint64_t epoch = 0;
  unsigned buckets = 1;
  /// For scan(). control() finds it, and a session writes the checked one.
  LogForm form = LogForm::checked;
  /// Returns the number of lines of a bucket.
  [[nodiscard]] std::uint64_t lines() const noexcept { return (bytes / 64 - 1) / buckets; }
  [[nodiscard]] std::uint64_t bucket_at(unsigned bucket) const noexcept {
    return offset + 64 + bucket * lines() * 64;
  }
  [[nodiscard]] std::uint64_t seed(unsigned bucket, std::uint64_t base) const noexcept {
    // mutant: wrap-seed-base
    return identity ^ base::mix(epoch ^ base::mix(base * 4 + bucket));
  }
};

inline constexpr unsigned max_buckets = 3;

struct WrapControl {
  bool ours = false;                ///< there is a log of this session
  LogForm form = LogForm::checked;  ///< its own, for scan() and entries()
  Status damage;                    ///< `corrupt` where no crash leaves what was found (LAW-10)
  std::uint64_t x = 0;
  std::array<std::uint64_t, max_buckets> base{};
};

/// A closed wrap that a scan has found: lines [first, last) of its bucket.
struct WrapFound {
  std::uint64_t id = 0, first = 0, last = 0;
  unsigned bucket = 0;
  bool long_close = false;
};

struct WrapScan {
  Status damage;
  std::uint64_t end = 0;  ///< the first line after the last closed wrap
  /// How many times lines were summed: at most 3 per line (the first form: 300).
  std::uint64_t summed = 0;
  std::vector<WrapFound> wraps;
};

class WrapLog {
 public:
  WrapLog(medium::Medium& medium, const WrapPlace& place) noexcept
      : medium_(medium), place_(place) {
    for (unsigned b = 0; b < place.buckets; ++b)
      extent_[b].configure(medium, place.bucket_at(b), place.lines() * 64);
  }

  /// Makes the log this session's, empty; `base`: all ids are above it. It costs two fences; three
  /// where the log there is of the first form. The line of control is allocated.
  Status format(std::uint64_t base);
  /// WRAPLOG-2, WRAPLOG-3: makes the bucket empty from now on. The caller fences before a wrap
  /// opens it.
  void begin_bucket(unsigned bucket, std::uint64_t base) noexcept;
  /// Notes the checkpoint id: the data region durably holds all logs' wraps up to `x`. Called for
  /// the first log. It costs a fence.
  Status note_checkpoint_id(std::uint64_t x) noexcept;

  /// Returns how many bytes of entries one wrap may have at most.
  [[nodiscard]] std::uint64_t capacity() const noexcept {
    return place_.lines() * 64 - closing_bytes;
  }
  /// Returns the number of lines of closed wraps. Any thread may call it.
  [[nodiscard]] std::uint64_t used() const noexcept {
    std::uint64_t lines = 0;
    // Relaxed: a count that pairs with nothing.
    for (const auto& t : tail_) lines += t.load(std::memory_order_relaxed);
    return lines;
  }
  /// Returns whether a wrap that opens this bucket finds half of it free, and allocated.
  [[nodiscard]] bool roomy(unsigned bucket) const noexcept {
    return tail_[bucket].load(std::memory_order_relaxed) * 2 <= place_.lines() &&
           ready(bucket, capacity() / 2);
  }
  /// Returns whether the bytes are allocated that a wrap with `bytes` of entries needs, if it opens
  /// this bucket.
  [[nodiscard]] bool ready(unsigned bucket, std::uint64_t bytes) const noexcept {
    return extent_[bucket].ready(end_of(bucket, bytes));
  }
  /// Returns whether that is all that such a wrap lacks: otherwise the bucket has to begin again.
  [[nodiscard]] bool lacks_blocks(unsigned bucket, std::uint64_t bytes) const noexcept {
    return end_of(bucket, bytes) <= place_.lines() * 64 && !ready(bucket, bytes);
  }
  /// Allocates them (ALLOC-1). Returns `full` where the disk is full.
  Status prepare(unsigned bucket, std::uint64_t bytes) {
    return extent_[bucket].extend(end_of(bucket, bytes));
  }
  /// The same ahead of need, for the bucket that was closed last.
  void prepare_ahead() noexcept {
    extent_[bucket_].extend_ahead(tail_[bucket_].load(std::memory_order_relaxed) * 64);
  }
  /// Returns the newest wrap that was closed here.
  [[nodiscard]] std::uint64_t last_id() const noexcept { return last_id_; }

  /// Opens a wrap in this bucket.
  void open(unsigned bucket) noexcept {
    bucket_ = bucket;
    // It was written by this thread, or by the owner that hands it the bucket.
    first_ = tail_[bucket].load(std::memory_order_relaxed);
    at_ = place_.bucket_at(bucket) + first_ * 64;
    sum_ = WrapSum(place_.seed(bucket, base_[bucket]), first_);
    lines_ = units_ = segment_ = 0;
  }
  /// Returns whether `bytes` more of entries of the open wrap fit.
  [[nodiscard]] bool fits(std::uint64_t bytes) const noexcept {
    const std::uint64_t end = (first_ + lines_) * 64 + units_ * 4 + bytes + closing_bytes;
    return end <= place_.lines() * 64 && extent_[bucket_].ready(end);
  }
  /// Returns the bytes of entries of the open wrap.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return lines_ * 64 + units_ * 4; }

  // Append what the wrap does, which must fit: 12 bytes, 24 for a word of another segment; 12 bytes
  // and 8 per word for a run.
  void word(std::uint64_t offset, std::uint64_t value) noexcept {
    const std::uint64_t number = offset / 8;
    if (__builtin_expect(number >> WrapRecord::segment_bits != segment_, 0)) {
      segment_ = number >> WrapRecord::segment_bits;
      entry(WrapRecord::segment, segment_);
    }
    entry(WrapRecord::tag_of(number), value);
  }
  void run(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) noexcept;
  /// Words from `offset` on that the data region has already: 12 bytes for each 2^24 of them.
  void object(std::uint64_t offset, std::uint64_t words) noexcept {
    for (std::uint64_t part = 0; words != 0; words -= part, offset += part * 8) {
      part = std::min(words, WrapRecord::max_in_run);
      entry(WrapRecord::object, offset / 8 | part << 40);
    }
  }
  void heap(const pool::HeapOp& op) noexcept {
    entry(op.set ? WrapRecord::alloc : WrapRecord::free, WrapRecord::value_of(op));
  }

  /// WRAPLOG-1: closes the open wrap durably. It costs a fence. lines() has its lines.
  Status close(std::uint64_t id) noexcept;
  /// Returns the number of lines of the wrap that was closed last.
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }

  /// Reads the control after a crash.
  static WrapControl control(const medium::Medium& medium, const WrapPlace& place);
  /// Scans a bucket of this session. `covered`: the data region is known to hold all wraps up to
  /// this id.
  static WrapScan scan(const medium::Medium& medium, const WrapPlace& place, unsigned bucket,
                       std::uint64_t base, std::uint64_t covered);
  /// REDO-4 (log/redo.hpp): starts the write-back of what a scan has relied on, without the
  /// control: if older words of the control came back, more wraps would be replayed, whose lines
  /// are all still there (WRAPLOG-2), with the same result.
  static void flush_scanned(medium::Medium& medium, const WrapPlace& place, unsigned bucket,
                            const WrapScan& scan) noexcept {
    if (scan.end != 0) medium.flush(place.bucket_at(bucket), scan.end * 64);
  }
  /// Visits a wrap's entries in order: word(offset, value), heap(op), object(offset, words).
  /// Returns the number of bytes between the last of them and the close: 8 or 4 of check, or 0.
  /// Returns -1 if one of them is no entry (only damage makes such).
  template <class Word, class Heap, class Object>
  static std::ptrdiff_t entries(const medium::Medium& medium, const WrapPlace& place,
                                const WrapFound& wrap, Word&& word, Heap&& heap, Object&& object);

 private:
  // Words of the line of control.
  static constexpr std::uint64_t epoch_word = 0, x_word = 8, base_word = 16;
  void entry(std::uint32_t tag, std::uint64_t value) noexcept {
    line_[units_] = tag;
    std::memcpy(&line_[units_ + 1], &value, 8);
    units_ += 3;
    if (units_ >= 16) full();
  }
  void full() noexcept;
  void start_word(std::uint64_t word, std::uint64_t value) noexcept;
  // What a wrap takes besides its entries, at most.
  static constexpr std::uint64_t closing_bytes = WrapRecord::long_close_bytes + 64;
  /// Returns the bucket's length in bytes after a wrap with `bytes` of entries that opens it.
  [[nodiscard]] std::uint64_t end_of(unsigned bucket, std::uint64_t bytes) const noexcept {
    return tail_[bucket].load(std::memory_order_relaxed) * 64 + bytes + closing_bytes;
  }

  medium::Medium& medium_;
  const WrapPlace place_;
  std::array<LogExtent, max_buckets> extent_;
  std::array<std::atomic<std::uint64_t>, max_buckets> tail_{};  // lines
  std::array<std::uint64_t, max_buckets> base_{};
  std::uint64_t last_id_ = 0;
  // The state of the open wrap.
  unsigned bucket_ = 0;
  // In units of 4 bytes, in line_.
  std::uint64_t first_ = 0, at_ = 0, lines_ = 0, units_ = 0, segment_ = 0;
  WrapSum sum_{0, 0};
  // The line that is being made, and what has spilled over.
  alignas(64) std::array<std::uint32_t, 32> line_{};
};

template <class Word, class Heap, class Object>
std::ptrdiff_t WrapLog::entries(const medium::Medium& medium, const WrapPlace& place,
                                const WrapFound& wrap, Word&& word, Heap&& heap, Object&& object) {
  const std::byte* at = medium.at(place.bucket_at(wrap.bucket) + wrap.first * 64);
  const std::byte* const end =
      at + (wrap.last - wrap.first) * 64 -
      (wrap.long_close ? WrapRecord::long_close_bytes : WrapRecord::close_bytes);
  std::uint64_t segment = 0;
  while (end - at > static_cast<std::ptrdiff_t>(WrapRecord::check_bytes)) {
    std::uint32_t tag = 0;
    std::memcpy(&tag, at, 4);
    at += 4;
    if (tag == 0) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, at, 8);  // more than 8 bytes were left
    at += 8;
    switch (tag) {
      case WrapRecord::segment: segment = value << WrapRecord::segment_bits; break;
      case WrapRecord::alloc:
      case WrapRecord::free: heap(WrapRecord::heap_op(tag, value)); break;
      case WrapRecord::object: object((value << 24 >> 24) * 8, value >> 40); break;
      case WrapRecord::run: {
        const std::uint64_t first = value << 24 >> 24, count = value >> 40;
        if (static_cast<std::uint64_t>(end - at) < count * 8) return -1;
        for (std::uint64_t i = 0; i < count; ++i, at += 8) {
          std::memcpy(&value, at, 8);
          word((first + i) * 8, value);
        }
        break;
      }
      default:
        if (tag > (std::uint32_t{1} << WrapRecord::segment_bits)) return -1;
        word((segment + tag - 1) * 8, value);
    }
  }
  return end - at;
}

}  // namespace perdure::papers::softwrap
