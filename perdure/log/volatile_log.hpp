// SPDX-License-Identifier: BSD-3-Clause
//
// VolatileLog: a thread's committed but not yet persisted transactions, in DRAM (DudeTM section 3.2: the volatile log region).
//
// A ring of transactions (id, words, payload) between the thread that commits and whoever persists. A payload never wraps: one that
// would is put at the start, with a skip mark before. A payload of more than a quarter of the ring goes by pointer.
// Thread safety: push by one thread; front/pop by one thread at a time (the persister's lock).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

namespace perdure::log {

class VolatileLog {
 public:
  struct Item {
    std::uint64_t id = 0;
    const std::uint64_t* payload = nullptr;
    std::uint64_t words = 0;
  };

  explicit VolatileLog(std::uint64_t words = 1 << 20) : capacity_(words), ring_(new std::uint64_t[words]) {}

  /// Whether push of a payload of n words would not have to wait.
  [[nodiscard]] bool fits(std::uint64_t n) const noexcept {
    // acquire pairs with pop: what lay there has been copied out
    return tail_.load(std::memory_order_relaxed) + 2 * footprint(n) - head_.load(std::memory_order_acquire) <= capacity_;
  }
  /// Allocates what push(n) will need, so that push can't fail.
  void prepare(std::uint64_t n) {
    if (by_pointer(n)) spare_.reset(new std::uint64_t[n]);
  }
  /// fits(n) and prepare(n) come before.
  void push(std::uint64_t id, const std::uint64_t* payload, std::uint64_t n) noexcept {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    const std::uint64_t size = footprint(n);
    const std::uint64_t to_end = capacity_ - at % capacity_;
    if (to_end < size) {
      ring_[at % capacity_] = skip;
      at += to_end;
    }
    std::uint64_t* p = &ring_[at % capacity_];
    p[0] = id;
    p[1] = n;
    if (by_pointer(n)) {
      std::uint64_t* const copy = spare_.release();
      std::memcpy(copy, payload, n * 8);
      std::memcpy(p + 2, &copy, sizeof copy);
    } else {
      std::copy_n(payload, n, p + 2);
    }
    tail_.store(at + size, std::memory_order_release);  // pairs with front's acquire
  }
  /// The oldest item, or id 0 when there is none.
  [[nodiscard]] Item front() noexcept {
    for (;;) {
      const std::uint64_t at = head_.load(std::memory_order_relaxed);
      if (at == tail_.load(std::memory_order_acquire)) return {};  // pairs with push
      const std::uint64_t* p = &ring_[at % capacity_];
      if (*p == skip) {
        head_.store(at + capacity_ - at % capacity_, std::memory_order_release);  // pairs with fits
        continue;
      }
      if (!by_pointer(p[1])) return {p[0], p + 2, p[1]};
      const std::uint64_t* copy;
      std::memcpy(&copy, p + 2, sizeof copy);
      return {p[0], copy, p[1]};
    }
  }
  void pop() noexcept {
    const Item item = front();
    if (by_pointer(item.words)) delete[] item.payload;
    head_.store(head_.load(std::memory_order_relaxed) + footprint(item.words), std::memory_order_release);  // pairs with fits
  }
  ~VolatileLog() {
    while (front().id != 0) pop();
  }
  VolatileLog(const VolatileLog&) = delete;
  VolatileLog& operator=(const VolatileLog&) = delete;

 private:
  static constexpr std::uint64_t skip = ~std::uint64_t{0};
  [[nodiscard]] bool by_pointer(std::uint64_t n) const noexcept { return n > capacity_ / 4; }
  [[nodiscard]] std::uint64_t footprint(std::uint64_t n) const noexcept { return by_pointer(n) ? 3 : n + 2; }

  std::uint64_t capacity_;
  std::unique_ptr<std::uint64_t[]> ring_, spare_;
  alignas(128) std::atomic<std::uint64_t> tail_{0};
  alignas(128) std::atomic<std::uint64_t> head_{0};
};

}  // namespace perdure::log
