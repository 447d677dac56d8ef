// SPDX-License-Identifier: BSD-3-Clause
//
// Isolation of every TM: histories of 2 to 4 threads are serializable in the order of the ids,
// every transaction sees one state while it runs (opacity), aborts leave nothing, ids are dense,
// and there is progress under contention.
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "tests/tm/suite.hpp"

namespace perdure::tm::testing {
namespace {

template <class M>
class Isolation : public ::testing::Test {
 public:
  std::unique_ptr<typename M::Shared> shared = std::make_unique<typename M::Shared>(0);
};
using Isolating = ::testing::Types<Stm, Biased, GlobalLock>;
TYPED_TEST_SUITE(Isolation, Isolating);

TYPED_TEST(Isolation, HistoriesAreSerialInTheOrderOfTheIds) {
  struct Shape {
    int threads, transactions;
    std::size_t words, most;
    double share;
  };
  // Few words: conflicts in most transactions; many: mostly none; 8 words share a line.
  for (const Shape& s :
       {Shape{2, 20000, 16, 6, 0.5}, Shape{4, 10000, 16, 4, 0.9}, Shape{3, 12000, 256, 12, 0.1},
        Shape{4, 10000, 1024, 3, 0.5}, Shape{2, 20000, 8, 3, 0.02}}) {
    auto fresh = std::make_unique<typename TypeParam::Shared>(0);
    EXPECT_EQ("", random_history<TypeParam>(s.threads, s.transactions / static_cast<int>(scale),
                                            s.words, s.most, s.share, 7, *fresh))
        << s.threads << " threads, " << s.words << " words";
  }
}

TYPED_TEST(Isolation, EveryRunningTransactionSeesOneState) {
  constexpr std::size_t n = 48;
  Words cells(n);
  for (std::size_t i = 0; i < n; ++i) cells[i] = i + 1;
  constexpr std::uint64_t sum = n * (n + 1) / 2;
  std::atomic<int> torn{0};
  in_threads(4, [&](int me) {
    typename TypeParam::Transaction transaction(*this->shared, base::thread_slot());
    std::mt19937_64 random(static_cast<std::uint64_t>(me));
    for (unsigned i = 0; i < 3000 / scale; ++i) {
      if (me < 2) {  // swaps: the cells are always a permutation
        const std::size_t a = random() % n, b = random() % n;
        atomically(transaction, true, [&](auto& tx) {
          const std::uint64_t x = tx[cells(a)], y = tx[cells(b)];
          // Seen by a run that may yet be aborted: not even that is allowed.
          if (a != b && x == y) ++torn;
          tx.write(cells(a), y);
          tx.write(cells(b), x);
        });
      } else {
        atomically(transaction, me == 3, [&](auto& tx) {  // a view, and an update that only reads
          std::uint64_t seen = 0;
          for (std::size_t k = 0; k < n; ++k) seen += tx[cells(k)];
          if (seen != sum) ++torn;
        });
      }
    }
  });
  EXPECT_EQ(0, torn);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < n; ++i) seen += cells[i];
  EXPECT_EQ(sum, seen);
}

TYPED_TEST(Isolation, MoneyIsNeitherMadeNorLostByTransfersHalfOfThemCancelled) {
  constexpr std::size_t accounts = 16;
  Words cells(accounts * 8);  // one line each
  for (std::size_t i = 0; i < accounts; ++i) cells[i * 8] = 1000;
  std::atomic<int> wrong{0};
  std::atomic<std::uint64_t> committed{0};
  in_threads(4, [&](int me) {
    typename TypeParam::Transaction transaction(*this->shared, base::thread_slot());
    std::mt19937_64 random(static_cast<std::uint64_t>(me) + 10);
    for (unsigned i = 0; i < 3000 / scale; ++i) {
      const std::size_t from = random() % accounts * 8, to = random() % accounts * 8;
      const std::uint64_t amount = random() % 50;
      const bool cancel = random() % 2 == 0;
      try {
        const Outcome done = atomically(transaction, true, [&](auto& tx) {
          if (tx[cells(from)] < amount) return;
          tx.write(cells(from), tx[cells(from)] - amount);
          if (cancel) throw Cancelled();
          tx.write(cells(to), tx[cells(to)] + amount);
        });
        committed += done.wrote ? 1 : 0;
      } catch (const Cancelled&) {}
      if (i % 8 == 0)
        atomically(transaction, false, [&](auto& tx) {
          std::uint64_t total = 0;
          for (std::size_t k = 0; k < accounts; ++k) total += tx[cells(k * 8)];
          if (total != accounts * 1000) ++wrong;
        });
    }
  });
  EXPECT_EQ(0, wrong);
  std::uint64_t total = 0;
  for (std::size_t k = 0; k < accounts; ++k) total += cells[k * 8];
  EXPECT_EQ(accounts * 1000, total);
  EXPECT_EQ(committed, this->shared->domain.clock.load())
      << "an id was drawn by an abort, or twice";
}

// A sorted list of the numbers below 64; next[i] at word i, the head at word 64, the length at word
// 65.
TYPED_TEST(Isolation, AListStaysSortedAndCountedUnderInsertsAndRemoves) {
  constexpr std::uint64_t keys = 64, end = 1000, head = 64, count = 65;
  Words next(66);
  next[head] = end;
  std::atomic<int> broken{0};
  in_threads(4, [&](int me) {
    typename TypeParam::Transaction transaction(*this->shared, base::thread_slot());
    std::mt19937_64 random(static_cast<std::uint64_t>(me) + 20);
    for (unsigned i = 0; i < 2000 / scale; ++i) {
      const std::uint64_t key = random() % keys;
      const bool insert = random() % 2 == 0;
      if (i % 4 == 0) {
        atomically(transaction, false, [&](auto& tx) {
          std::uint64_t length = 0, before = 0;
          for (std::uint64_t at = tx[next(head)]; at != end; at = tx[next(at)]) {
            if (at >= keys || (length != 0 && at <= before) || ++length > keys) {
              ++broken;
              return;
            }
            before = at;
          }
          if (length != tx[next(count)]) ++broken;
        });
        continue;
      }
      atomically(transaction, true, [&](auto& tx) {
        std::uint64_t before = head, at = tx[next(head)], steps = 0;
        while (at != end && at < key) {
          before = at;
          at = tx[next(at)];
          if (++steps > keys) {  // a circle: no consistent state has one
            ++broken;
            return;
          }
        }
        if (insert && at != key) {
          tx.write(next(key), at);
          tx.write(next(before), key);
          tx.write(next(count), tx[next(count)] + 1);
        } else if (!insert && at == key) {
          tx.write(next(before), tx[next(key)]);
          tx.write(next(key), 77);  // poison: no transaction may follow it
          tx.write(next(count), tx[next(count)] - 1);
        }
      });
    }
  });
  EXPECT_EQ(0, broken);
  std::uint64_t length = 0;
  for (std::uint64_t at = next[head]; at != end && length <= keys; at = next[at]) ++length;
  EXPECT_EQ(next[count], length);
}

TYPED_TEST(Isolation, FourThreadsOnOneWordLoseNothingAndComeToAnEnd) {
  Words word(1);
  const unsigned each = 8000 / scale;
  in_threads(4, [&](int) {
    typename TypeParam::Transaction transaction(*this->shared, base::thread_slot());
    for (unsigned i = 0; i < each; ++i)
      atomically(transaction, true, [&](auto& tx) { tx.write(word(0), tx[word(0)] + 1); });
  });
  EXPECT_EQ(4 * each, word[0]);
  EXPECT_EQ(4 * each, this->shared->domain.clock.load());
}

TYPED_TEST(Isolation, AnIdIsQuietWhenItsCommitHasReturnedAndAllBefore) {
  Words far(64);
  std::atomic<int> stage{0};
  std::thread slow([&] {
    typename TypeParam::Transaction transaction(*this->shared, base::thread_slot());
    transaction.begin(true);
    transaction.own(far(0));
    transaction.store(far(0), 1);
    transaction.commit([&](std::uint64_t id) {
      EXPECT_EQ(1U, id);
      stage = 1;
      while (stage != 2) std::this_thread::yield();
    });
  });
  while (stage != 1) std::this_thread::yield();
  EXPECT_EQ(1U, this->shared->domain.clock.load());
  EXPECT_EQ(0U, this->shared->domain.low_watermark()) << "id 1 is not done";
  if constexpr (std::is_same_v<TypeParam, Stm>) {  // the others admit no thread beside it
    typename TypeParam::Transaction transaction(*this->shared, base::thread_slot());
    EXPECT_EQ(2U, atomically(transaction, true, [&](auto& tx) { tx.write(far(32), 1); }).id);
    EXPECT_EQ(0U, this->shared->domain.low_watermark()) << "id 2 is done, id 1 is not";
  }
  stage = 2;
  slow.join();
  EXPECT_EQ(this->shared->domain.clock.load(), this->shared->domain.low_watermark());
}

template <class M>
class Alone : public ::testing::Test {};
using All = ::testing::Types<Stm, Biased, GlobalLock, None>;
TYPED_TEST_SUITE(Alone, All);

TYPED_TEST(Alone, AnAbortPutsEveryWordBackAndDrawsNoId) {
  auto shared = std::make_unique<typename TypeParam::Shared>(41);
  typename TypeParam::Transaction transaction(*shared, base::thread_slot());
  Words memory(4096);
  for (std::size_t i = 0; i < 4096; ++i) memory[i] = i;
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(atomically(transaction, true,
                            [&](auto& tx) {
                              for (std::size_t i = 0; i < 4096; ++i) tx.write(memory(i), 7);
                              // twice: the oldest value counts
                              for (std::size_t i = 0; i < 4096; i += 3) tx.write(memory(i), 8);
                              EXPECT_EQ(8U, tx[memory(3)]);
                              EXPECT_EQ(7U, tx[memory(4)]);
                              throw Cancelled();
                            }),
                 Cancelled);
    for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(i, memory[i]);
    EXPECT_EQ(41U, shared->domain.clock.load());
  }
  EXPECT_EQ(42U, atomically(transaction, true, [&](auto& tx) { tx.write(memory(0), 1); }).id);
  EXPECT_EQ(42U, atomically(transaction, true, [&](auto& tx) { (void)tx[memory(0)]; }).id)
      << "an update that wrote nothing draws none";
  EXPECT_EQ(42U, atomically(transaction, false, [&](auto& tx) { (void)tx[memory(0)]; }).id);
  EXPECT_EQ(43U, atomically(transaction, true, [&](auto& tx) { tx.write(memory(0), 2); }).id);
  EXPECT_EQ(43U, shared->domain.low_watermark());
}

TYPED_TEST(Alone, ATransactionReadsWhatItWrote) {
  auto shared = std::make_unique<typename TypeParam::Shared>(0);
  typename TypeParam::Transaction transaction(*shared, base::thread_slot());
  Words memory(64);
  atomically(transaction, true, [&](auto& tx) {
    for (std::uint64_t k = 0; k < 1000; ++k) {
      tx.write(memory(k % 64), k);
      EXPECT_EQ(k, tx[memory(k % 64)]);
    }
  });
  EXPECT_EQ(999U, memory[999 % 64]);
}

// What a checkpoint does while others write: a copied line is what one committed transaction left,
// whole.
template <class M>
class Copies : public ::testing::Test {};
TYPED_TEST_SUITE(Copies, All);

TYPED_TEST(Copies, ACopiedLineIsWholeAndCommittedBesideWritersThatAlsoAbort) {
  auto shared = std::make_unique<typename TypeParam::Shared>(0);
  Words lines(16 * 8);
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0}, written{0};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w)
    writers.emplace_back([&, w] {
      typename TypeParam::Transaction transaction(*shared, base::thread_slot());
      std::mt19937_64 random(static_cast<std::uint64_t>(w));
      while (!stop) {
        // Lines of its own: None does not isolate.
        const std::size_t line = (random() % 8 * 2 + static_cast<std::size_t>(w)) * 8;
        const bool cancel = random() % 4 == 0;
        try {
          atomically(transaction, true, [&](auto& tx) {
            const std::uint64_t v = tx[lines(line)] + 1;
            for (std::size_t k = 0; k < 8; ++k) tx.write(lines(line + k), cancel ? ~v : v);
            if (cancel) throw Cancelled();
          });
          ++written;
        } catch (const Cancelled&) {}
      }
    });
  typename TypeParam::Transaction transaction(*shared, base::thread_slot());
  std::uint64_t last[16] = {};
  for (unsigned i = 0; i < 1500 / scale || written < 3000 / static_cast<int>(scale); ++i) {
    transaction.copy_begin();
    for (std::size_t line = 0; line < 16; ++line) {
      std::uint64_t copy[8];
      transaction.copy_line(copy, lines(line * 8));
      for (const std::uint64_t v : copy)
        if (v != copy[0] || v > 1ULL << 60 || v < last[line]) ++torn;
      last[line] = copy[0];
    }
    transaction.copy_end();
  }
  stop = true;
  for (auto& t : writers) t.join();
  EXPECT_EQ(0, torn);
}

}  // namespace
}  // namespace perdure::tm::testing
