// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of hardware transactions: histories judged in the order of their commit
// timestamps, which have gaps, and the stand-in's limits while a test runs.
#pragma once

#include <string>

#include "perdure/tm/rtm_stand_in.hpp"
#include "perdure/tm/timestamps.hpp"
#include "tests/tm/suite.hpp"

namespace perdure::tm::testing {

/// The stand-in's limits while a test runs.
struct WithLimits {
  explicit WithLimits(RtmStandIn::Limits l) { RtmStandIn::limits() = l; }
  ~WithLimits() { RtmStandIn::limits() = {}; }
  WithLimits(const WithLimits&) = delete;
  WithLimits& operator=(const WithLimits&) = delete;
};
/// Commits a store to `a`; f(id) is its before_publish.
template <class Transaction, class F>
void store_one(Transaction& transaction, std::uint64_t* a, F&& f) {
  for (;;) {
    transaction.begin(true);
    try {
      transaction.own(a);
      transaction.store(a, 1);
      return transaction.commit(f);
    } catch (const Conflict&) {
      transaction.rollback();
    }
  }
}

/// Like suite.hpp's judge, but ids may have gaps.
inline std::string judge_timestamps(std::vector<Entry> entries, std::size_t words) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.id != b.id ? a.id < b.id : a.wrote > b.wrote;
  });
  std::uint64_t last = 100, dense = 0, of_last = 100;
  for (Entry& e : entries) {
    if (e.wrote && e.id <= last)
      return "timestamp " + std::to_string(e.id) + " is not above " + std::to_string(last);
    if (e.wrote) of_last = e.id, ++dense;
    last = of_last;
    e.id = dense;
  }
  return judge(std::move(entries), words);
}

template <class M>
std::string stamped_history(typename M::Shared& shared, int threads, int transactions,
                            std::size_t words, std::size_t most, double share) {
  Words memory(words);
  std::vector<std::vector<Entry>> logs(static_cast<std::size_t>(threads));
  in_threads(threads, [&](int me) {
    typename M::Transaction transaction(shared, base::thread_slot());
    std::mt19937_64 random(static_cast<std::uint64_t>(me) + 70);
    for (int i = 0; i < transactions; ++i) {
      const bool update = std::uniform_real_distribution<>(0, 1)(random) < share;
      const bool cancel = update && random() % 16 == 0;
      const std::uint64_t choice = random();
      Entry entry;
      try {
        const Outcome done = atomically(transaction, update, [&](auto& tx) {
          entry.accesses.clear();
          std::mt19937_64 inner(choice);
          for (std::size_t k = 0, n = 1 + inner() % most; k < n; ++k) {
            const std::size_t w = inner() % words;
            entry.accesses.push_back({w, tx[memory(w)], false});
            if (!update || inner() % 2 != 0) continue;
            const std::uint64_t value = inner() | 1;
            tx.write(memory(w), value);
            entry.accesses.push_back({w, value, true});
          }
          if (cancel) throw Cancelled();
        });
        entry.id = done.id;
        entry.wrote = done.wrote;
        logs[static_cast<std::size_t>(me)].push_back(std::move(entry));
      } catch (const Cancelled&) {  // as if it had never run
      }
    }
  });
  std::vector<Entry> all;
  for (auto& log : logs) all.insert(all.end(), log.begin(), log.end());
  return judge_timestamps(std::move(all), words);
}

}  // namespace perdure::tm::testing
