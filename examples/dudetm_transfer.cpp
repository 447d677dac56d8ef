// SPDX-License-Identifier: BSD-3-Clause
//
// dudetm_transfer PATH: two threads run transfers back to back; each reports a transfer when it is
// durable (the durable id, DudeTM section 3.2). Prints how many transfers there were, how many were
// aborted for lack of money, and the bank's total.
#include "dudetm_transfer.hpp"

#include <atomic>
#include <cstdio>
#include <deque>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PATH\n", argv[0]);
    return 2;
  }
  try {
    using namespace dudetm_transfer;
    perdure::Options options;
    options.durability = perdure::async;  // dtmEnd returns before the transaction is durable
    Dtm dtm(argv[1], options);
    open_accounts(dtm, 10);
    std::atomic<int> told{0}, aborted{0};
    const auto work = [&](std::size_t seed) {
      std::deque<std::uint64_t> waiting;  // performed, not known to be durable yet
      for (int i = 0; i < 5000; ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const std::size_t src = seed >> 33, dst = seed >> 45;
        if (const std::uint64_t id = transfer(dtm, src % Bank::size, dst % Bank::size); id != 0)
          waiting.push_back(id);
        else
          ++aborted;
        for (const std::uint64_t durable = dtm.durableId();
             !waiting.empty() && waiting.front() <= durable; waiting.pop_front())
          ++told;
      }
      for (; !waiting.empty(); waiting.pop_front(), ++told) dtm.wait(waiting.front());
    };
    std::thread one(work, 1), two(work, 2);
    one.join();
    two.join();
    std::printf("%d transfers, %d aborted, total %lld\n", told.load() + aborted.load(),
                aborted.load(), static_cast<long long>(total(dtm)));
    dtm.close();
  } catch (const perdure::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
