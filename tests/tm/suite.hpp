// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of the transactional memories: words, a transaction that retries, threads
// that start together, and a history that says whether the committed transactions have one serial
// order: that of the ids.
//
// Source of the check: commit-order serializability (Papadimitriou, JACM '79, with the order given
// by the ids, so that it is linear).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "perdure/base/thread_slot.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::tm::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr unsigned scale = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr unsigned scale = 4;
#else
inline constexpr unsigned scale = 1;
#endif

/// Words that a TM isolates, on lines of their own.
class Words {
 public:
  explicit Words(std::size_t n) : words_(n + 8) {
    first_ = words_.data();
    while (reinterpret_cast<std::uintptr_t>(first_) % 64 != 0) ++first_;
  }
  std::uint64_t* operator()(std::size_t i) { return first_ + i; }
  std::uint64_t& operator[](std::size_t i) { return first_[i]; }

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t* first_;
};

/// A transaction's reads and writes, with what an engine does around a store.
template <class Transaction>
class Access {
 public:
  explicit Access(Transaction& c) : c_(c) {}
  std::uint64_t operator[](const std::uint64_t* a) { return c_.read(a); }
  void write(std::uint64_t* a, std::uint64_t v) {
    c_.own(a);
    c_.store(a, v);
    wrote_ = true;
  }
  [[nodiscard]] bool wrote() const { return wrote_; }
  Transaction& transaction() { return c_; }

 private:
  Transaction& c_;
  bool wrote_ = false;
};

struct Outcome {
  std::uint64_t id = 0;  ///< the id drawn, or the clock value that bounds what was read
  bool wrote = false;
  int runs = 0;
};
struct Cancelled {};  ///< a test's transaction throws it to be rolled back

/// Runs f(access) until it commits, or throws Cancelled.
template <class Transaction, class F>
Outcome atomically(Transaction& c, bool update, F&& f) {
  Outcome done;
  for (;;) {
    c.begin(update);
    ++done.runs;
    Access<Transaction> access(c);
    try {
      f(access);
      done.wrote = access.wrote();
      if (done.wrote)
        c.commit([&](std::uint64_t id) { done.id = id; });
      else
        done.id = c.end_read_only();
      return done;
    } catch (const Conflict&) {
      c.rollback();
      c.backoff();
    } catch (...) {
      c.rollback();
      throw;
    }
  }
}

/// Runs f(i) in n threads that start together.
template <class F>
void in_threads(int n, F&& f) {
  std::barrier start(n);
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      f(i);
    });
  for (auto& t : threads) t.join();
}

/// One committed transaction as its thread saw it.
struct Entry {
  struct Access {
    std::size_t word;
    std::uint64_t value;
    bool write;
  };
  std::uint64_t id = 0;
  bool wrote = false;
  std::vector<Access> accesses;
};

/// Replays the entries in id order from zeros: every read must see the latest write, every id must
/// be present once. A read-only entry saw the state after its id. Returns the first error, or "".
inline std::string judge(std::vector<Entry> entries, std::size_t words) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.id != b.id ? a.id < b.id : a.wrote > b.wrote;
  });
  std::vector<std::uint64_t> state(words);
  std::uint64_t last = 0;
  for (const Entry& e : entries) {
    if (e.wrote) {
      if (e.id != last + 1)
        return "id " + std::to_string(e.id) + " follows " + std::to_string(last);
      last = e.id;
    } else if (e.id > last) {
      return "a view saw the state after id " + std::to_string(e.id) + ", but the last is " +
             std::to_string(last);
    }
    for (const auto& a : e.accesses) {
      if (a.write)
        state[a.word] = a.value;
      else if (state[a.word] != a.value)
        return std::string(e.wrote ? "the transaction with id " : "the view at id ") +
               std::to_string(e.id) + " read " + std::to_string(a.value) + " from word " +
               std::to_string(a.word) + ", whose value then was " + std::to_string(state[a.word]);
    }
  }
  return "";
}

/// Random transactions by `threads` threads over `words` words, `share` of them updates of up to
/// `most` words; then judge().
template <class M>
std::string random_history(int threads, int transactions, std::size_t words, std::size_t most,
                           double share, std::uint64_t seed, typename M::Shared& shared) {
  Words memory(words);
  std::vector<std::vector<Entry>> logs(static_cast<std::size_t>(threads));
  in_threads(threads, [&](int me) {
    typename M::Transaction transaction(shared, base::thread_slot());
    std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(me));
    auto& log = logs[static_cast<std::size_t>(me)];
    for (int i = 0; i < transactions; ++i) {
      const bool update = std::uniform_real_distribution<>(0, 1)(random) < share;
      const bool cancel = update && random() % 16 == 0;
      const std::uint64_t choice = random();
      Entry entry;
      try {
        const Outcome done = atomically(transaction, update, [&](auto& tx) {
          entry.accesses.clear();
          std::mt19937_64 inner(choice);
          const std::size_t n = 1 + inner() % most;
          for (std::size_t k = 0; k < n; ++k) {
            const std::size_t w = inner() % words;
            entry.accesses.push_back({w, tx[memory(w)], false});
            if (update && inner() % 2 == 0) {
              const std::uint64_t value = inner() | 1;
              tx.write(memory(w), value);
              entry.accesses.push_back({w, value, true});
            }
          }
          if (cancel) throw Cancelled();
        });
        entry.id = done.id;
        entry.wrote = done.wrote;
        log.push_back(std::move(entry));
      } catch (const Cancelled&) {  // as if it had never run
      }
    }
  });
  std::vector<Entry> all;
  for (auto& log : logs) all.insert(all.end(), log.begin(), log.end());
  std::uint64_t commits = 0;
  for (const auto& e : all) commits += e.wrote ? 1 : 0;
  if (shared.domain.clock.load() != commits)
    return "the clock says " + std::to_string(shared.domain.clock.load()) + ", commits were " +
           std::to_string(commits);
  if (shared.domain.low_watermark() != commits) return "not quiet at the end";
  return judge(std::move(all), words);
}

}  // namespace perdure::tm::testing
