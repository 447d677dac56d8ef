// SPDX-License-Identifier: BSD-3-Clause
//
// The data's mapping as a DRAM copy of the data region: how heap ops are applied to it, and which
// of its lines differ from the data region. Marks has one word per 4 KiB page, one bit per 64-byte
// line.
//
// SHADOW-1: a mark is set before its line's store is visible to a copy that counts: while the line
// is owned (by orec, bias or lock), and before the transaction ends. The checkpoint clears a page's
// marks with one exchange, then copies their lines as the TM allows (tm::copy): it waits for the
// owner of a line, or for the end of the transaction that is alone, so it copies that store too; or
// the mark was set after the clearing, and the next checkpoint copies it. Nothing but a transaction
// sets marks: one that is alone sets them by a load and a store, and would lose another thread's.
// One byte per line instead (and one per page) cost 9 ns per store to random addresses: eight times
// the cache, two stores.
// Thread safety: as each call says.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "perdure/pool/heap.hpp"

namespace perdure::engine {

/// Zeroed memory that takes only address space until it is touched.
template <class T>
class LazyArray {
 public:
  /// `huge_pages`: for an array that is touched nearly everywhere.
  explicit LazyArray(std::size_t n, bool huge_pages = true) : bytes_(n * sizeof(T)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    if (huge_pages) madvise(p, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<T*>(p);
  }
  ~LazyArray() { munmap(static_cast<void*>(data_), bytes_); }
  LazyArray(const LazyArray&) = delete;
  LazyArray& operator=(const LazyArray&) = delete;
  [[nodiscard]] T* data() const noexcept { return data_; }

 private:
  std::size_t bytes_;
  T* data_;
};

class Marks {
 public:
  explicit Marks(std::uint64_t max_data_bytes) : pages_(max_data_bytes / 4096 + 1) {}
  /// `alone`: the transaction is exclusive (bias, lock), so no other thread sets marks, and the
  /// mark is a plain store, also where it is set already: what takes it meanwhile waits for the
  /// transaction's end (BESIDE-1). Otherwise it is an atomic or, omitted where the mark is set: the
  /// thread owns the line and still sees the mark, so the line will be copied after the thread
  /// releases it.
  void mark(std::uint64_t offset, bool alone) const noexcept {
    std::uint64_t* const word = pages_.data() + (offset >> 12);
    const std::uint64_t bit = std::uint64_t{1} << (offset >> 6 & 63);
    // This load follows the locked instruction that owned or changed the line.
    const std::uint64_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (__builtin_expect(alone, 1))
      __atomic_store_n(word, seen | bit, __ATOMIC_RELAXED);
    else if ((seen & bit) == 0)
      // Pairs with the exchange in take(): either the mark is cleared before, or the next take sees
      // it.
      __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
  }
  /// The words, for mark_alone(): mark(offset, true) for a caller that has them at hand.
  [[nodiscard]] std::uint64_t* words() const noexcept { return pages_.data(); }
  [[gnu::always_inline]] static void mark_alone(std::uint64_t* words,
                                                std::uint64_t offset) noexcept {
    std::uint64_t* const word = words + (offset >> 12);
    // The exchange in take() may come between the two (BESIDE-1).
    const std::uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    __atomic_store_n(word, seen | std::uint64_t{1} << (offset >> 6 & 63), __ATOMIC_RELAXED);
  }
  void mark(std::uint64_t offset, std::uint64_t n, bool alone) const noexcept {
    for (std::uint64_t at = offset & ~63ULL; at < offset + n; at += 64) mark(at, alone);
  }
  [[nodiscard]] bool any(std::uint64_t page) const noexcept {
    return __atomic_load_n(pages_.data() + page, __ATOMIC_RELAXED) != 0;
  }
  /// Calls f(offset) for each marked line of a page, after it has cleared all of the page's marks.
  /// It is called by tm::copy()'s take().
  template <class F>
  void take(std::uint64_t page, F&& f) {
    // The exchange is a full fence: the marks are cleared before the lines are read.
    for (std::uint64_t m = __atomic_exchange_n(pages_.data() + page, 0, __ATOMIC_SEQ_CST); m != 0;
         m &= m - 1)
      f(page * 4096 + static_cast<std::uint64_t>(__builtin_ctzll(m)) * 64);
  }

 private:
  LazyArray<std::uint64_t> pages_;
};

/// Applies heap ops to the mapping. Bitmap words are shared by transactions and owned by none. So
/// the mark follows the change: a checkpoint that took an earlier mark may have copied the line
/// without it; this mark makes the next one copy it, and until then the op's record is above the
/// checkpoint id. And each change is a locked instruction: a plain store could still be in the
/// store buffer when the mark is found set and is left, and the checkpoint that takes it then would
/// copy the old word (Dekker). An exclusive transaction needs neither: no other thread changes a
/// word before it ends, its marks are always stored, and what it has changed is copied after its
/// end (BESIDE-1, BESIDE-2). There a locked instruction would stall the next transaction's loads
/// until the commit's fence is complete. Marks are null where the data region is not written from
/// the mapping.
class ViewTarget final : public pool::HeapTarget {
 public:
  ViewTarget(std::byte* view, const Marks* marks) : view_(view), marks_(marks) {}
  /// Sets whether the transaction whose ops follow is exclusive (`alone`, tm.hpp).
  void alone(bool yes) noexcept { alone_ = yes; }
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override {
    return __atomic_load_n(at(offset), __ATOMIC_ACQUIRE);
  }
  // Each change is at least a release, which pairs with load(). Where it is a locked instruction it
  // also pairs with the exchange in Marks::take.
  void store(std::uint64_t offset, std::uint64_t value) override {
    if (alone_)
      __atomic_store_n(at(offset), value, __ATOMIC_RELEASE);
    else
      __atomic_exchange_n(at(offset), value, __ATOMIC_SEQ_CST);
    note(offset);
  }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    if (alone_)
      __atomic_store_n(at(offset), *at(offset) | mask, __ATOMIC_RELEASE);
    else
      __atomic_fetch_or(at(offset), mask, __ATOMIC_SEQ_CST);
    note(offset);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    if (alone_)
      __atomic_store_n(at(offset), *at(offset) & ~mask, __ATOMIC_RELEASE);
    else
      __atomic_fetch_and(at(offset), ~mask, __ATOMIC_SEQ_CST);
    note(offset);
  }

 private:
  [[nodiscard]] std::uint64_t* at(std::uint64_t offset) const noexcept {
    return reinterpret_cast<std::uint64_t*>(view_ + offset);
  }
  void note(std::uint64_t offset) const noexcept {
    if (marks_ != nullptr) marks_->mark(offset, alone_);
  }
  std::byte* view_;
  const Marks* marks_;
  bool alone_ = false;
};

}  // namespace perdure::engine
