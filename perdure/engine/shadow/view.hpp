// SPDX-License-Identifier: BSD-3-Clause
//
// The shadow: the view's base, and which of its lines differ from home (marks: a byte a 64-byte line, a byte a 4 KiB page).
//
// Rule: a mark is stored unconditionally, while its line is owned (by orec, bias or lock), before the store to the line. The checkpoint
// clears marks by exchange, then copies each line under the TM's protection; so a line whose mark it cleared is copied with that store, or the mark is set after the clearing.
// Thread safety: marks are relaxed atomic bytes; x86 keeps a thread's stores in order (line mark, page mark, data).
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "perdure/pool/heap.hpp"

namespace perdure::engine::shadow {

/// Zero memory that takes address space only until it is touched.
template <class T>
class LazyArray {
 public:
  explicit LazyArray(std::size_t n) : bytes_(n * sizeof(T)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
  explicit Marks(std::uint64_t max_home_bytes) : lines_(max_home_bytes / 64 + 64), pages_(max_home_bytes / 4096 + 8) {}
  void mark(std::uint64_t offset) const noexcept {
    __atomic_store_n(lines_.data() + (offset >> 6), std::uint8_t{1}, __ATOMIC_RELAXED);
    __atomic_store_n(pages_.data() + (offset >> 12), std::uint8_t{1}, __ATOMIC_RELAXED);
  }
  void mark(std::uint64_t offset, std::uint64_t n) const noexcept {
    for (std::uint64_t at = offset & ~63ULL; at < offset + n; at += 64) mark(at);
  }
  /// Calls f(page) for each marked page below `pages`, and unmarks it.
  template <class F>
  void take_pages(std::uint64_t pages, F&& f) {
    auto* const words = reinterpret_cast<std::uint64_t*>(pages_.data());
    for (std::uint64_t i = 0; i * 8 < pages; ++i) {
      if (__atomic_load_n(words + i, __ATOMIC_RELAXED) == 0) continue;
      std::uint64_t marks = __atomic_exchange_n(words + i, 0, __ATOMIC_SEQ_CST);  // a full fence: marks are cleared before lines are looked at
      for (; marks != 0; marks &= marks - 1) f(i * 8 + static_cast<std::uint64_t>(__builtin_ctzll(marks)) / 8);
    }
  }
  /// Calls f(offset) for each marked line of a page, after unmarking all of them.
  template <class F>
  void take_lines(std::uint64_t page, F&& f) {
    auto* const words = reinterpret_cast<std::uint64_t*>(lines_.data() + page * 64);
    std::uint64_t marks[8];
    for (int i = 0; i < 8; ++i)
      marks[i] = __atomic_load_n(words + i, __ATOMIC_RELAXED) == 0 ? 0 : __atomic_exchange_n(words + i, 0, __ATOMIC_SEQ_CST);  // as above
    for (int i = 0; i < 8; ++i)
      for (std::uint64_t m = marks[i]; m != 0; m &= m - 1)
        f(page * 4096 + static_cast<std::uint64_t>(i) * 512 + static_cast<std::uint64_t>(__builtin_ctzll(m)) / 8 * 64);
  }

 private:
  LazyArray<std::uint8_t> lines_, pages_;
};

/// Applies heap ops to the view. Atomic, because bitmap words are shared by transactions and owned by none: so here the mark follows the
/// change. A checkpoint that took an earlier mark may have copied the line without it; this mark makes the next one copy it, and until
/// then the op's record is above X. No marks (null) under log replay.
class ViewTarget final : public pool::HeapTarget {
 public:
  ViewTarget(std::byte* view, const Marks* marks) : view_(view), marks_(marks) {}
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override { return __atomic_load_n(at(offset), __ATOMIC_ACQUIRE); }
  void store(std::uint64_t offset, std::uint64_t value) override {
    __atomic_store_n(at(offset), value, __ATOMIC_RELEASE);  // pairs with load
    note(offset);
  }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    __atomic_fetch_or(at(offset), mask, __ATOMIC_ACQ_REL);
    note(offset);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    __atomic_fetch_and(at(offset), ~mask, __ATOMIC_ACQ_REL);
    note(offset);
  }

 private:
  [[nodiscard]] std::uint64_t* at(std::uint64_t offset) const noexcept { return reinterpret_cast<std::uint64_t*>(view_ + offset); }
  void note(std::uint64_t offset) const noexcept {
    if (marks_ != nullptr) marks_->mark(offset);
  }
  std::byte* view_;
  const Marks* marks_;
};

}  // namespace perdure::engine::shadow
