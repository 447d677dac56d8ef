// SPDX-License-Identifier: BSD-3-Clause
//
// order_book_v2 plan|open|kill FILE: version 2 of the order book takes over a pool of version 1.
#include "examples/order_book_v2.hpp"

#include <cstdio>

#include "examples/version_2.hpp"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  using book::v2::Root;
  return version_2::run<Root>(argc, argv, book::v2::steps(), [&](const perdure::Options& options) {
    book::v2::Book book(argv[2], options);
    const auto found = book.totals();
    const auto old = book.orders_of("trader 1");
    bool right = found.sound() && !old.empty();
    for (const auto& order : old) right &= order.placed >= order.quantity && !order.until;
    const book::v2::Time now(1'800'000'000s);
    const auto rest = book.place(book::Side::buy, {0, 1, 10, "eve", 0, now + 1h});
    right &= rest.resting == 10 && book.expire(now) == 0 && book.expire(now + 1h) == 1;
    right &= book.orders_of("eve").empty() && book.totals().sound() && book.pool().check().ok();
    std::printf("%s: %llu resting\n", right ? "right" : "WRONG",
                static_cast<unsigned long long>(found.resting));
    return right ? 0 : 1;
  });
}
