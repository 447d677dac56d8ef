// SPDX-License-Identifier: BSD-3-Clause
//
// receipts FILE: updates that don't wait, and three ways to learn that they are durable: co_await,
// then(), wait().
//
// An update with perdure::async returns at once, with its value and a receipt. One thread can
// therefore have many updates in flight, which share the device's syncs; an answer is sent only
// when its receipt says that the update is durable.
#include <perdure.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <latch>

namespace {

struct Journal {
  perdure::vector<std::uint64_t> entries;
};
using Pool = perdure::Pool<Journal>;

auto append(Pool& pool, std::uint64_t entry) {
  return pool.update(perdure::async, [=](auto& tx, Journal& journal) {
    journal.entries.push_back(tx, entry);
    return journal.entries.size(tx);
  });
}

// The smallest coroutine: it starts at once, and nothing waits for its result.
struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// Serves one request: the pool's thread gives the answer when the update is durable; the caller
// continues meanwhile.
Detached serve(Pool& pool, std::uint64_t request, std::atomic<std::uint64_t>& answered,
               std::latch& done) {
  co_await append(pool, request);
  ++answered;
  done.count_down();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: receipts FILE\n"), 2;
  try {
    auto pool =
        Pool::open(argv[1], {.creation = {.max_size = std::uint64_t{1} << 30, .log_size = 8 << 20},
                             .durability = perdure::group});
    constexpr int requests = 2000;
    std::atomic<std::uint64_t> answered{0};
    std::latch done(requests);
    for (int i = 0; i < requests; ++i) serve(pool, static_cast<std::uint64_t>(i), answered, done);
    done.wait();

    const auto by_callback = append(pool, 1);
    std::latch told(1);
    by_callback.then([](auto task) { task(); },  // an executor: this one runs the task in place
                     [&](perdure::Status status) {
                       if (status.ok()) told.count_down();
                     });
    told.wait();

    const auto last = append(pool, 2);
    last.wait();  // also covers all earlier updates
    const auto stats = pool.stats();
    std::printf("%llu answers, journal of %llu entries, %llu syncs\n",
                static_cast<unsigned long long>(answered.load()),
                static_cast<unsigned long long>(last.value()),
                static_cast<unsigned long long>(stats.medium.syncs));
    return last.durable() && answered == requests ? 0 : 1;
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "receipts: %s\n", e.what()), 1;
  }
}
