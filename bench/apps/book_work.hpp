// SPDX-License-Identifier: BSD-3-Clause
//
// book-40: orders of 1,000 traders in a limit order book, one call per operation: 40 % cancel an
// order that was placed recently, the others place one. Prices are within 50 of the middle, so that
// about half of the orders meet one of the other side. 10,000 orders rest further out.
// Invariants: book::Totals::sound(); the orders by owner are all that rest.
// Thread safety: any number of threads call step; a process has one session of this structure.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/session.hpp"
#include "bench/harness/timed.hpp"
#include "examples/order_book.hpp"

namespace bench::apps {

struct BookWork {
  static constexpr const char* structure = "book";
  static constexpr std::uint64_t loaded = 10'000, traders = 1000, recent = 1024;
  static constexpr book::Price middle = 100'000, reach = 50, depth = 1000;

  static std::string trader(std::uint64_t n) { return "trader-" + std::to_string(n % traders); }

  template <class Host>
  static void fill(Host& host, const Setting&) {
    constexpr std::uint64_t a_batch = 10;
    for (std::uint64_t from = 0; from < loaded; from += a_batch)
      host.batch([&] {
        for (std::uint64_t n = from; n < from + a_batch; ++n) {
          const auto away = reach + 1 + static_cast<book::Price>(n / 2) % depth;
          const bool buys = n % 2 == 0;
          host.store().place(buys ? book::Side::buy : book::Side::sell, trader(n / 2),
                             buys ? middle - away : middle + away, quantity_of(n));
        }
      });
    for (std::uint64_t n = 0; n < loaded; ++n) entered_ += quantity_of(n);
  }
  static void check_parameter(unsigned percent) { check_percent(structure, percent); }
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned percent, Rng& rng) {
    if (rng.below(100) < percent) {
      const std::uint64_t id = recent_[rng.below(recent)].exchange(0, std::memory_order_relaxed);
      return {.wrote = id != 0 && host.store().cancel(id)};
    }
    const auto side = rng.below(2) == 0 ? book::Side::buy : book::Side::sell;
    const auto price = middle - reach + static_cast<book::Price>(rng.below(2 * reach + 1));
    const std::uint32_t quantity = quantity_of(rng.below(100));
    const auto placed = host.store().place(side, trader(rng.below(traders)), price, quantity);
    entered_.fetch_add(quantity, std::memory_order_relaxed);
    if (placed.resting != 0)
      recent_[placed.id % recent].store(placed.id, std::memory_order_relaxed);
    return {.wrote = true};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t) {
    const auto found = host.store().totals();
    std::uint64_t owned = 0;
    for (std::uint64_t n = 0; n < traders; ++n)
      for (const auto& order : host.store().orders_of(trader(n))) owned += order.quantity;
    if (found.sound() && owned == found.resting && found.entered == entered_.load()) return {};
    return {"book: found " + std::to_string(found.entered) + " entered, " +
            std::to_string(found.traded) + " traded, " + std::to_string(found.cancelled) +
            " cancelled, " + std::to_string(found.resting) + " resting, " + std::to_string(owned) +
            " of owners, expected entered = " + std::to_string(entered_.load()) +
            " = 2 * traded + cancelled + resting, and a bid below the ask"};
  }

 private:
  static std::uint32_t quantity_of(std::uint64_t n) {
    return 1 + static_cast<std::uint32_t>(n % 100);
  }
  static inline std::atomic<std::uint64_t> entered_{0};  // read after the threads have ended
  static inline std::array<std::atomic<std::uint64_t>, recent> recent_{};  // ids, or 0
};

}  // namespace bench::apps
