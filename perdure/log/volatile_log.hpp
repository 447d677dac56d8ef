// SPDX-License-Identifier: BSD-3-Clause
//
// VolatileLog: a thread's committed but not yet persisted transactions, in DRAM (DudeTM section
// 3.2: the volatile log region).
//
// A ring of transactions (id, words, payload) between the thread that commits and the log writer.
// A payload never wraps: one that would is put at the start, with a skip mark before. A payload of
// more than a quarter of the ring goes by pointer. One that is `unbounded` (DudeTM-Inf, section
// 5.1) never is full: it goes on in a ring of twice the size, and the old one goes when it has been
// read.
// Thread safety: push by one thread; front/pop by one thread at a time (the persister's lock).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
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

  explicit VolatileLog(std::uint64_t words = 1 << 20, bool unbounded = false)
      : unbounded_(unbounded), write_(new Segment(words)), read_(write_) {}

  /// Whether push of a payload of n words would not have to wait.
  [[nodiscard]] bool fits(std::uint64_t n) noexcept { return unbounded_ || write_->fits(n); }
  /// Allocates what push(n) will need, so that push can't fail. Throws std::bad_alloc.
  void prepare(std::uint64_t n) {
    if (unbounded_ && __builtin_expect(!write_->fits(n), 0) && next_ == nullptr)
      next_.reset(new Segment(std::min(write_->capacity * 2, largest)));
    Segment& where = next_ != nullptr ? *next_ : *write_;
    if (where.by_pointer(n)) spare_.reset(new std::uint64_t[n]);
  }
  /// fits(n) and prepare(n) come before.
  void push(std::uint64_t id, const std::uint64_t* payload, std::uint64_t n) noexcept {
    if (__builtin_expect(next_ != nullptr, 0)) {
      Segment* const next = next_.release();
      // pairs with front: what it holds so far is seen
      write_->next.store(next, std::memory_order_release);
      write_ = next;
    }
    Segment& s = *write_;
    std::uint64_t at = s.tail.load(std::memory_order_relaxed);
    const std::uint64_t size = s.footprint(n);
    const std::uint64_t to_end = s.capacity - s.index(at);
    if (to_end < size) {
      s.ring[s.index(at)] = skip;
      at += to_end;
    }
    std::uint64_t* p = &s.ring[s.index(at)];
    p[0] = id;
    p[1] = n;
    if (s.by_pointer(n)) {
      std::uint64_t* const copy = spare_.release();
      std::memcpy(copy, payload, n * 8);
      std::memcpy(p + 2, &copy, sizeof copy);
    } else {
      std::copy_n(payload, n, p + 2);
    }
    s.tail.store(at + size, std::memory_order_release);  // pairs with front's acquire
  }
  /// Takes note of what has been pushed so far. Not at each item: the tail's line would go to and
  /// fro between the two threads with every transaction.
  // pairs with push
  void look() noexcept { read_->seen_tail = read_->tail.load(std::memory_order_acquire); }
  /// The oldest item, or id 0 when there is none.
  [[nodiscard]] Item front() noexcept {
    look();
    return front_seen();
  }
  /// The oldest of those that look() saw, or id 0.
  [[nodiscard]] Item front_seen() noexcept {
    for (;;) {
      Segment& s = *read_;
      const std::uint64_t at = s.head.load(std::memory_order_relaxed);
      if (at == s.seen_tail) {
        Segment* const next = s.next.load(std::memory_order_acquire);  // pairs with push
        if (next == nullptr) return {};
        look();
        if (at != s.seen_tail) continue;
        delete read_;
        read_ = next;
        look();
        continue;
      }
      const std::uint64_t* p = &s.ring[s.index(at)];
      if (*p == skip) {
        s.head.store(at + s.capacity - s.index(at), std::memory_order_release);  // pairs with fits
        continue;
      }
      if (!s.by_pointer(p[1])) return {p[0], p + 2, p[1]};
      const std::uint64_t* copy;
      std::memcpy(&copy, p + 2, sizeof copy);
      return {p[0], copy, p[1]};
    }
  }
  /// `item` is what front() or front_seen() has just said.
  void pop(const Item& item) noexcept {
    Segment& s = *read_;
    if (s.by_pointer(item.words)) delete[] item.payload;
    // pairs with fits
    s.head.store(s.head.load(std::memory_order_relaxed) + s.footprint(item.words),
                 std::memory_order_release);
  }
  ~VolatileLog() {
    for (Item item = front(); item.id != 0; item = front()) pop(item);
    delete read_;
  }
  VolatileLog(const VolatileLog&) = delete;
  VolatileLog& operator=(const VolatileLog&) = delete;

 private:
  static constexpr std::uint64_t skip = ~std::uint64_t{0};
  static constexpr std::uint64_t largest = std::uint64_t{1} << 24;  ///< words: 128 MiB

  struct Segment {
    explicit Segment(std::uint64_t words)
        : capacity(std::bit_ceil(words)), ring(new std::uint64_t[capacity]) {}
    [[nodiscard]] std::uint64_t index(std::uint64_t at) const noexcept {
      return at & (capacity - 1);
    }
    // The head as last seen, where that is enough: its line is the popper's, and reading it aborts
    // a hardware transaction at the next pop.
    [[nodiscard]] bool fits(std::uint64_t n) noexcept {
      const std::uint64_t end = tail.load(std::memory_order_relaxed) + 2 * footprint(n);
      if (end - seen_head <= capacity) return true;
      // pairs with pop: what lay there has been copied out
      seen_head = head.load(std::memory_order_acquire);
      return end - seen_head <= capacity;
    }
    [[nodiscard]] bool by_pointer(std::uint64_t n) const noexcept { return n > capacity / 4; }
    [[nodiscard]] std::uint64_t footprint(std::uint64_t n) const noexcept {
      return by_pointer(n) ? 3 : n + 2;
    }

    // a power of two: a division would cost a commit as much as its copy
    const std::uint64_t capacity;
    const std::unique_ptr<std::uint64_t[]> ring;
    std::uint64_t seen_head = 0;  // the pusher's
    alignas(128) std::atomic<std::uint64_t> tail{0};
    alignas(128) std::atomic<std::uint64_t> head{0};
    std::uint64_t seen_tail = 0;          // the popper's
    std::atomic<Segment*> next{nullptr};  ///< where it goes on; nothing is pushed here any more
  };

  const bool unbounded_;
  Segment* write_;  // the pusher's
  std::unique_ptr<Segment> next_;
  std::unique_ptr<std::uint64_t[]> spare_;
  alignas(128) Segment* read_;  // the popper's
};

}  // namespace perdure::log
