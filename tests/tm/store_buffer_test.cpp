// SPDX-License-Identifier: BSD-3-Clause
//
// Commit timestamps of hardware transactions on a processor whose stores wait in a store buffer:
// the stand-in models it, and a seeded scheduler decides which thread continues at each step, so
// that the same faults are found on machines without RTM, and again from their seed.
// If Htm's drain() is replaced by an instruction that drains nothing inside a transaction (as in an
// earlier protocol), both HTM-2 and TIMESTAMP-1 break.
#include "tests/crash/scheduler.hpp"
#include "tests/tm/stamped.hpp"

namespace perdure::tm::testing {
namespace {

using M = Htm<RtmStandIn>;
constexpr std::uint64_t seeds = 1000 / scale;

struct Found {
  bool early = false;  ///< complete() passed a commit that was still to come (HTM-2)
  /// Not serial in the order of commit timestamps (TIMESTAMP-1, TIMESTAMP-2); empty if it is.
  std::string history;
};

/// Two threads commit, one calls complete() repeatedly, and one reads; the seed decides everything.
Found run(std::uint64_t seed, bool drains_in_try) {
  const WithLimits with({.lines_read = 1 << 20,
                         .lines_written = 1 << 20,
                         .abort_one_in = 0,
                         .store_buffer = true,
                         .drains_in_try = drains_in_try,
                         .point = test::Scheduler::point});
  constexpr std::size_t words = 2;
  Found found;
  M::Shared shared(100);
  Words cells(words * 8);
  std::vector<Entry> entries;
  std::uint64_t said = 0;
  test::Scheduler::start(seed);
  const auto perform = [&](int me, bool update) {
    M::Transaction transaction(shared, me);
    for (std::uint64_t i = 1; i <= 4; ++i) {
      Entry entry;
      for (;;) {
        transaction.begin(update);
        entry.accesses.clear();
        try {
          for (std::size_t w = 0; w < words; ++w) {
            entry.accesses.push_back({w, transaction.read(cells(w * 8)), false});
            if (!update) continue;
            const std::uint64_t value = i * 8 + static_cast<std::uint64_t>(me);
            transaction.own(cells(w * 8));
            transaction.store(cells(w * 8), value);
            entry.accesses.push_back({w, value, true});
          }
          if (update)
            transaction.commit([&](std::uint64_t id) {
              entry.id = id;
              found.early |= said >= id;  // it is in no log yet
            });
          else
            entry.id = transaction.end_read_only();
          break;
        } catch (const Conflict&) {
          transaction.rollback();
          transaction.backoff();
        }
      }
      entry.wrote = update;
      entries.push_back(std::move(entry));
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(perform, 0, true);
  threads.emplace_back(perform, 1, true);
  threads.emplace_back(perform, 2, false);
  for (int i = 0; i < 30; ++i) {
    said = std::max(said, shared.complete());
    test::Scheduler::point();
  }
  for (auto& t : threads) t.join();
  test::Scheduler::stop();
  found.history = judge_timestamps(std::move(entries), words);
  return found;
}

TEST(StoreBuffer, CommitTimestampsHoldOverEverySeed) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Found found = run(seed, true);
    ASSERT_FALSE(found.early) << "complete() passed a commit that was still to come, seed " << seed;
    ASSERT_EQ("", found.history) << "seed " << seed;
  }
}

// The model can show both faults, otherwise the case above proves nothing.
TEST(StoreBuffer, ALockedInstructionInATransactionIsFoundOut) {
  std::uint64_t early = 0, unordered = 0;
  for (std::uint64_t seed = 1; seed <= seeds && (early == 0 || unordered == 0); ++seed) {
    const Found found = run(seed, false);
    if (found.early && early == 0) early = seed;
    if (!found.history.empty() && unordered == 0) unordered = seed;
  }
  EXPECT_NE(0U, early) << "no commit was passed by complete() within " << seeds << " seeds";
  EXPECT_NE(0U, unordered) << "all histories were in the order of their timestamps within " << seeds
                           << " seeds";
  std::printf(
      "[          ] drains nothing in a try: complete() too high at seed %llu, order wrong at seed "
      "%llu\n",
      static_cast<unsigned long long>(early), static_cast<unsigned long long>(unordered));
}

}  // namespace
}  // namespace perdure::tm::testing
