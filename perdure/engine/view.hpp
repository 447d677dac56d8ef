// SPDX-License-Identifier: BSD-3-Clause
//
// A view that is a DRAM copy of home: how heap ops are applied to it, and which of its lines differ
// from home. Marks: one word a 4 KiB page, one bit a 64-byte line.
//
// Rule: a mark is there before a line is stored to, while the line is owned (by orec, bias or
// lock). The checkpoint clears a page's marks by one exchange, then copies each of its lines under
// the TM's protection: it waits for the line's owner, so it copies that store too; or the mark was
// set after the clearing, and the next checkpoint copies it.
// A byte a line instead (and a byte a page) cost 9 ns a store to random addresses: eight times the
// cache, two stores.
// Thread safety: as each call says.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "perdure/pool/heap.hpp"

namespace perdure::engine {

/// Zero memory that takes address space only until it is touched.
template <class T>
class LazyArray {
 public:
  explicit LazyArray(std::size_t n) : bytes_(n * sizeof(T)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, bytes_, MADV_HUGEPAGE);
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
  explicit Marks(std::uint64_t max_home_bytes) : pages_(max_home_bytes / 4096 + 1) {}
  /// `alone`: nobody else marks or takes at this time (bias, lock); else an atomic or, left out
  /// where the mark is there: whoever owns the line and still sees the mark will have it copied
  /// after he lets go.
  void mark(std::uint64_t offset, bool alone) const noexcept {
    std::uint64_t* const word = pages_.data() + (offset >> 12);
    const std::uint64_t bit = std::uint64_t{1} << (offset >> 6 & 63);
    // after the locked instruction that owned or changed the line
    const std::uint64_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (__builtin_expect(alone, 1))
      __atomic_store_n(word, seen | bit, __ATOMIC_RELAXED);
    else if ((seen & bit) == 0)
      // pairs with take: it is cleared before, or this mark is seen by the next
      __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
  }
  void mark(std::uint64_t offset, std::uint64_t n, bool alone) const noexcept {
    for (std::uint64_t at = offset & ~63ULL; at < offset + n; at += 64) mark(at, alone);
  }
  [[nodiscard]] bool any(std::uint64_t page) const noexcept {
    return __atomic_load_n(pages_.data() + page, __ATOMIC_RELAXED) != 0;
  }
  /// Calls f(offset) for each marked line of a page, after unmarking all of them. Between the TM's
  /// copy_begin and copy_end.
  template <class F>
  void take(std::uint64_t page, F&& f) {
    // A full fence: the marks are cleared before the lines are looked at.
    for (std::uint64_t m = __atomic_exchange_n(pages_.data() + page, 0, __ATOMIC_SEQ_CST); m != 0;
         m &= m - 1)
      f(page * 4096 + static_cast<std::uint64_t>(__builtin_ctzll(m)) * 64);
  }

 private:
  LazyArray<std::uint64_t> pages_;
};

/// Applies heap ops to the view. Bitmap words are shared by transactions and owned by none. So the
/// mark follows the change: a checkpoint that took an earlier mark may have copied the line without
/// it; this mark makes the next one copy it, and until then the op's record is above X. And each
/// change is a locked instruction: a plain store could still be in the store buffer when the mark
/// is found set and left, and the checkpoint that takes it then would copy the old word (Dekker). A
/// transaction that is alone needs neither: nobody else changes a word or takes a mark before it
/// ends; a locked instruction would there stop the next transaction's loads until the commit's
/// fence is through. No marks (null) where home is not written from the view.
class ViewTarget final : public pool::HeapTarget {
 public:
  ViewTarget(std::byte* view, const Marks* marks) : view_(view), marks_(marks) {}
  /// Whether the transaction whose ops come next is alone (tm.hpp).
  void alone(bool yes) noexcept { alone_ = yes; }
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override {
    return __atomic_load_n(at(offset), __ATOMIC_ACQUIRE);
  }
  // Each change is at least a release: pairs with load. Where it is locked also with the exchange
  // in Marks::take.
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
