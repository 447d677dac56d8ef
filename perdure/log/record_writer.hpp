// SPDX-License-Identifier: BSD-3-Clause
//
// RecordWriter: gathers a log record (record.hpp) in DRAM and seals it.
// Thread safety: a writer belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "perdure/base/checksum.hpp"
#include "perdure/base/status.hpp"
#include "perdure/log/record.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::log {

/// Where a record's next entry goes, and how far from a word of the record its old value is.
struct RecordCursor {
  std::uint64_t* at = nullptr;
  std::uint64_t to_old = 0;
  /// Do two words fit before `end`? Both may be null: then none do. It compares numbers, because
  /// pointers must not be moved past the end of their block, or from null.
  [[nodiscard]] [[gnu::always_inline]] bool fits(const std::uint64_t* end) const noexcept {
    return reinterpret_cast<std::uintptr_t>(at) + 2 * sizeof *at <=
           reinterpret_cast<std::uintptr_t>(end);
  }
  /// Adds a word with its old value; two words must fit.
  [[gnu::always_inline]] void add(std::uint64_t offset, std::uint64_t value,
                                  std::uint64_t old) noexcept {
    at[to_old + 1] = old;
    at[0] = entry_key(EntryKind::words, offset, 1);
    at[1] = value;
    at += 2;
  }
};

/// Gathers one record in DRAM, entry by entry, and seals it. The checksum is taken in one pass at
/// the end, in registers. Taken store by store, its sums would live in memory, and updating them
/// cost 8 ns per store instead of 1 ns (measured; a record is in the L1 cache).
class RecordWriter {
 public:
  RecordWriter() noexcept = default;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  ~RecordWriter() { std::free(words_); }

  /// A record may take `max_bytes` bytes; `unit` is the medium's append unit, a power of two.
  /// `keeps_old`: words come with their old values (word() and words() below that take them). Call
  /// this before first use.
  void configure(std::uint64_t seed, std::uint64_t max_bytes, std::size_t unit,
                 bool keeps_old = false) {
    start_ = base::Checksum(seed);
    max_words_ = max_bytes / 8;
    unit_words_ = unit / 8;
    keeps_old_ = keeps_old;
    if (words_ == nullptr) grow(1024);
    reset();
  }
  /// Binds the records to a ring of the same length, by its seed. What was gathered stays.
  void bind(std::uint64_t seed) noexcept { start_ = base::Checksum(seed); }
  void reset() noexcept { at_ = words_ + header_words; }
  [[nodiscard]] bool empty() const noexcept { return at_ == words_ + header_words; }
  /// Returns the number of bytes that the record will take in a ring.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    const auto words = static_cast<std::uint64_t>(at_ - words_);
    // The unit is a power of two: a division would cost as much as a store's cache miss.
    return ((words + unit_words_ - 1) & ~(unit_words_ - 1)) * 8;
  }
  /// The same, if n more words of entries are added.
  [[nodiscard]] std::uint64_t bytes_with(std::uint64_t n) const noexcept {
    const auto words = static_cast<std::uint64_t>(at_ - words_) + n;
    return ((words + unit_words_ - 1) & ~(unit_words_ - 1)) * 8;
  }
  [[nodiscard]] std::uint64_t payload_words() const noexcept {
    return static_cast<std::uint64_t>(at_ - words_) - header_words;
  }
  [[nodiscard]] const std::uint64_t* payload() const noexcept { return words_ + header_words; }
  [[nodiscard]] bool keeps_old() const noexcept { return keeps_old_; }
  [[nodiscard]] std::uint64_t max_bytes() const noexcept { return max_words_ * 8; }

  /// Throws error(too_big) or std::bad_alloc unless n more words fit; after that the next entries
  /// of n words in all do not throw.
  void room(std::uint64_t n) {
    if (__builtin_expect(at_ + n > end_, 0)) more(n);
  }
  /// Adds one 8-byte word at an offset in the data region (a multiple of 8). Throws error(too_big).
  void word(std::uint64_t offset, std::uint64_t value) {
    room(2);
    put(entry_key(EntryKind::words, offset, 1), value);
  }
  /// The same, and keeps the word's old value, in DRAM alone: it is stored beside the record, at a
  /// fixed distance from the new value, so one cursor serves both.
  void word(std::uint64_t offset, std::uint64_t value, std::uint64_t old) {
    room(2);
    RecordCursor next = cursor();
    next.add(offset, value, old);
    cursor(next);
  }
  /// For a caller that adds entries itself, between these two calls. `end` is where a cursor must
  /// not pass; there word() takes over.
  [[nodiscard]] RecordCursor cursor() const noexcept { return {at_, to_old_}; }
  [[nodiscard]] const std::uint64_t* end() const noexcept { return end_; }
  void cursor(const RecordCursor& next) noexcept { at_ = next.at; }
  /// Adds n consecutive words: n words and a key. Throws as word() does, with nothing recorded.
  void words(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n,
             EntryKind kind = EntryKind::words) {
    // Exactly what it takes, not a word more: code that gathers again what fitted once relies on
    // it.
    room((n + 2) / 2 * 2 + 2 * (n / max_count));
    while (n > 0) {
      const std::uint64_t run = n < max_count ? n : max_count;
      at_[0] = entry_key(kind, offset, run);
      std::memcpy(at_ + 1, values, run * 8);
      at_ += run + 1;
      if (run % 2 == 0) *at_++ = 0;
      offset += run * 8;
      values += run;
      n -= run;
    }
  }
  /// The same, and keeps their old values, as word() does.
  void words_over(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n,
                  const std::uint64_t* old) {
    if (__builtin_expect(n >= max_count, 0)) {
      for (std::uint64_t i = 0; i < n; ++i) word(offset + i * 8, values[i], old[i]);
      return;
    }
    room((n + 2) / 2 * 2);
    at_[0] = entry_key(EntryKind::words, offset, n);
    std::uint64_t* const olds = at_ + to_old_;
    for (std::uint64_t i = 0; i < n; ++i) {
      olds[1 + i] = old[i];
      at_[1 + i] = values[i];
    }
    at_ += n + 1;
    if (n % 2 == 0) *at_++ = 0;
  }
  /// Calls f(offset, old value) for each word that was added with its old value, the last one
  /// first. The record may only be reset afterwards.
  template <class F>
  void each_old(F&& f) noexcept {
    // Entries can be read forwards only. So a first pass writes, where an entry's key has no old
    // value, how many words before it the entry before begins.
    std::uint64_t back = 0;
    std::uint64_t* at = words_ + header_words;
    for (std::uint64_t* next; at != at_; at = next) {
      next = at + span_of(*at);
      at[to_old_] = back;
      back = static_cast<std::uint64_t>(next - at);
    }
    while (at != words_ + header_words) {
      at -= back;
      back = at[to_old_];
      if (key_kind(*at) != EntryKind::words) continue;
      for (std::uint64_t i = key_count(*at); i-- > 0;)
        f(key_offset(*at) + i * 8, at[to_old_ + 1 + i]);
    }
  }
  /// Calls f(offset, n) for each run of n words that was added.
  template <class F>
  void each_run(F&& f) const noexcept {
    for (const std::uint64_t* at = words_ + header_words; at != at_; at += span_of(*at))
      if (key_kind(*at) == EntryKind::words) f(key_offset(*at), key_count(*at));
  }
  /// Adds an entry of a kind without an offset, with n words (at most max_count), which the caller
  /// fills at once. Throws as word() does, with nothing recorded.
  [[nodiscard]] std::uint64_t* entry_of(EntryKind kind, std::uint64_t n) {
    room((n + 2) / 2 * 2);
    at_[0] = entry_key(kind, 0, n);
    std::uint64_t* const words = at_ + 1;
    at_ += n + 1;
    if (n % 2 == 0) *at_++ = 0;
    return words;
  }
  void heap_op(const pool::HeapOp& op) {
    room(2);
    put(entry_key(op.set ? EntryKind::alloc : EntryKind::free, op.offset, op.cls), op.chunks);
  }
  /// Adds that the record counts only with the one of `timestamp` in ring `ring`. REQUIRES: room()
  /// has made space for its two words.
  void after(std::uint64_t ring, std::uint64_t timestamp) noexcept {
    put(entry_key(EntryKind::after, 0, ring), timestamp);
  }
  void end_of(std::uint64_t id) {
    room(2);
    put(entry_key(EntryKind::end, 0, 0), id);
  }
  /// Adds entries that another writer gathered (an even number of words).
  void entries(const std::uint64_t* from, std::uint64_t n) {
    room(n);
    std::memcpy(at_, from, n * 8);
    at_ += n;
  }

  /// Writes header, checksum and padding for a record at ring position `position`. The result is
  /// bytes() long and 64-byte aligned.
  [[nodiscard]] [[gnu::always_inline]] const std::uint64_t* seal(RecordKind kind, std::uint64_t id,
                                                                 std::uint32_t transactions,
                                                                 std::uint64_t position) noexcept {
    const std::uint64_t n = payload_words();
    std::uint64_t* const padded = words_ + bytes() / 8;
    for (std::uint64_t* p = at_; p < padded; ++p) {
      if (padded - p >= 8) {
        std::memset(p, 0, static_cast<std::size_t>(padded - p) * 8);
        break;
      }
      *p = 0;
      asm("" : "+r"(p));  // a call of memset costs more than the usual one or two words
    }
    words_[0] = id | static_cast<std::uint64_t>(kind) << 48;
    words_[2] = n | std::uint64_t{transactions} << 32;
    words_[1] = record_checksum(words_, n, position, start_);
    return words_;
  }

 private:
  void put(std::uint64_t a, std::uint64_t b) noexcept {
    at_[0] = a;
    at_[1] = b;
    at_ += 2;
  }
  void more(std::uint64_t n) {
    const auto need = static_cast<std::uint64_t>(at_ - words_) + n;
    if (need > max_words_)
      throw error(
          failure(Code::too_big, "",
                  "a transaction that logs more than " + std::to_string(max_words_ * 8) + " bytes",
                  "at most half a log ring", "split it, or make the pool with a larger log_size"));
    grow(need);
  }
  void grow(std::uint64_t need) {
    std::uint64_t capacity = words_ == nullptr ? 1024 : static_cast<std::uint64_t>(limit_ - words_);
    while (capacity < need + unit_words_ + 8) capacity *= 2;
    // The old values begin half a page further than the record does. Where both are equally far
    // from a page's start, a load of the one waits for a store to the other.
    const std::uint64_t to_old = keeps_old_ ? capacity + 256 : 0;
    auto* bigger = static_cast<std::uint64_t*>(
        std::aligned_alloc(4096, ((to_old + capacity) * 8 + 4095) / 4096 * 4096));
    if (bigger == nullptr) throw std::bad_alloc();
    const auto used = words_ == nullptr ? 0 : static_cast<std::size_t>(at_ - words_);
    if (used != 0) std::memcpy(bigger, words_, used * 8);
    if (used != 0 && keeps_old_) std::memcpy(bigger + to_old, words_ + to_old_, used * 8);
    std::free(words_);
    to_old_ = to_old;
    words_ = bigger;
    at_ = words_ + used;
    limit_ = words_ + capacity;
    end_ = limit_ - unit_words_;  // space for padding is always left
    if (static_cast<std::uint64_t>(end_ - words_) > max_words_) end_ = words_ + max_words_;
  }

  std::uint64_t* at_ = nullptr;   // the next word
  std::uint64_t* end_ = nullptr;  // where more() is called
  std::uint64_t to_old_ = 0;      // from a word of the record to its old value; 0: none are kept
  std::uint64_t* words_ = nullptr;
  base::Checksum start_;
  std::uint64_t* limit_ = nullptr;
  std::uint64_t max_words_ = 0;
  std::uint64_t unit_words_ = 8;
  bool keeps_old_ = false;
};

}  // namespace perdure::log
