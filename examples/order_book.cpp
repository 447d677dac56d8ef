// SPDX-License-Identifier: BSD-3-Clause
//
// order_book FILE [kill]: four traders place and cancel orders in a limit order book. Nothing that
// entered is lost, whatever happens. With `kill` the process kills itself in the middle; run it
// again: the sums are right.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "examples/order_book.hpp"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return std::fprintf(stderr, "usage: order_book FILE [kill]\n"), 2;
  try {
    book::Book orders(argv[1]);
    const auto found = orders.totals();
    std::printf("%llu found resting, sums %s\n", static_cast<unsigned long long>(found.resting),
                found.sound() ? "right" : "WRONG");
    bool right = found.sound();
    if (found.entered == 0) {  // price first, then time
      const auto a = orders.place(book::Side::sell, "ann", 1001, 10).id;
      const auto b = orders.place(book::Side::sell, "bob", 1001, 5).id;
      const auto c = orders.place(book::Side::sell, "cid", 1000, 1).id;
      const auto bought = orders.place(book::Side::buy, "dan", 1001, 13);
      right &= bought.fills == std::vector<book::Fill>{{c, 1000, 1}, {a, 1001, 10}, {b, 1001, 2}};
      right &= orders.orders_of("bob").at(0).quantity == 3 && orders.cancel(b);
    }
    std::atomic<int> placed{0};
    std::vector<std::thread> traders;
    for (unsigned t = 0; t < 4; ++t) {
      traders.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 100; ++i) {
          const auto side = random() % 2 == 0 ? book::Side::buy : book::Side::sell;
          const auto id = orders
                              .place(side, "trader " + std::to_string(t),
                                     990 + static_cast<book::Price>(random() % 21),
                                     1 + static_cast<std::uint32_t>(random() % 100))
                              .id;
          if (random() % 4 == 0) orders.cancel(id);
          if (++placed == 200 && argc == 3) std::raise(SIGKILL);
        }
      });
    }
    for (auto& trader : traders) trader.join();
    const auto now = orders.totals();
    right &= now.sound() && orders.pool().check().ok();
    std::printf("entered %llu = 2 * %llu traded + %llu cancelled + %llu resting: %s\n",
                static_cast<unsigned long long>(now.entered),
                static_cast<unsigned long long>(now.traded),
                static_cast<unsigned long long>(now.cancelled),
                static_cast<unsigned long long>(now.resting), right ? "right" : "WRONG");
    return right ? 0 : 1;
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "order_book: %s\n", e.what()), 1;
  }
}
