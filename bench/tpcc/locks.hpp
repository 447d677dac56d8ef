// SPDX-License-Identifier: BSD-3-Clause
//
// The caller's isolation of new orders (papers: REWIND, VLDB '15, section 4.7: it is up to the
// programmer). Locks are taken before a transaction begins and released when it has ended, because
// no transaction may overwrite what another could still roll back; always in one order, so that
// there is no deadlock; never inside a transaction, so that a waiting thread does not delay a
// checkpoint.
//   tables  naive layout: one lock per table that is written (district, orders, new_order,
//           order_line, stock)
//   rows    optimised layout: one lock per district, for its row and its three trees, and one for
//           each of 16,384 classes of stock rows
// item, customer and warehouse, and the trees of district and stock, are only read.
// Thread safety: any number of threads, each with a Held of its own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "bench/workloads/tpcc_input.hpp"

namespace bench::tpcc {

enum class Granularity : std::uint8_t { none, tables, rows };

/// A lock of four bytes. A thread that finds it held sleeps.
class Lock {
 public:
  void take() noexcept {
    std::uint32_t seen = open;
    // pairs with the release in give()
    if (state_.compare_exchange_strong(seen, held, std::memory_order_acquire)) return;
    while (state_.exchange(awaited, std::memory_order_acquire) != open)
      state_.wait(awaited, std::memory_order_relaxed);
  }
  void give() noexcept {
    if (state_.exchange(open, std::memory_order_release) == awaited) state_.notify_one();
  }

 private:
  static constexpr std::uint32_t open = 0, held = 1, awaited = 2;
  std::atomic<std::uint32_t> state_{open};
};

class Locks {
 public:
  explicit Locks(Granularity granularity) : granularity_(granularity) {}

  /// The locks that one order holds, from its construction on.
  class Held {
   public:
    Held(Locks& locks, const Input& in) noexcept {
      if (locks.granularity_ == Granularity::none) return;
      if (locks.granularity_ == Granularity::tables) {
        for (auto& table : locks.tables_) own_[count_++] = &table.lock;
      } else {
        own_[count_++] = &locks.districts_[in.district - 1].lock;
        for (std::uint32_t i = 0; i < in.lines; ++i)
          own_[count_++] = &locks.stock_[in.line[i].item % classes];
        std::sort(own_.begin() + 1, own_.begin() + count_);
        count_ =
            static_cast<int>(std::unique(own_.begin() + 1, own_.begin() + count_) - own_.begin());
      }
      for (int i = 0; i < count_; ++i) own_[static_cast<std::size_t>(i)]->take();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      while (count_-- > 0) own_[static_cast<std::size_t>(count_)]->give();
    }

   private:
    std::array<Lock*, 1 + max_lines> own_{};
    int count_ = 0;
  };

 private:
  static constexpr std::uint32_t classes = 1 << 14;
  struct alignas(128) Alone {
    Lock lock;
  };
  const Granularity granularity_;
  std::array<Alone, 5> tables_;
  std::array<Alone, districts> districts_;
  std::unique_ptr<Lock[]> stock_ = std::make_unique<Lock[]>(classes);
};

}  // namespace bench::tpcc
