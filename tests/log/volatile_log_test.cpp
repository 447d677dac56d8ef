// SPDX-License-Identifier: BSD-3-Clause
//
// VolatileLog: a queue of transactions that never wraps a payload, never overtakes its reader, and
// sends large ones by pointer.
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "perdure/log/volatile_log.hpp"
#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

std::vector<std::uint64_t> payload(std::uint64_t id, std::uint64_t n) {
  std::vector<std::uint64_t> p(n);
  for (std::uint64_t i = 0; i < n; ++i) p[i] = id << 20 | i;
  return p;
}

TEST(VolatileLog, IsAQueueOfItsOwnersTransactions) {
  for (const std::uint64_t capacity : {64UL, 100UL, 1024UL}) {
    VolatileLog log(capacity);
    std::deque<std::pair<std::uint64_t, std::uint64_t>> model;
    std::mt19937_64 random(capacity);
    std::uint64_t id = 0;
    EXPECT_EQ(0U, log.front().id);
    for (unsigned step = 0; step < 20000 / scale; ++step) {
      const std::uint64_t n =
          random() % 9 == 0 ? random() % (2 * capacity) : random() % (capacity / 4 + 1);
      if (random() % 2 == 0 && log.fits(n)) {
        log.prepare(n);
        ++id;
        log.push(id, payload(id, n).data(), n);
        model.emplace_back(id, n);
      } else if (!model.empty() && random() % 3 != 0) {
        const auto item = log.front();
        ASSERT_EQ(model.front().first, item.id);
        ASSERT_EQ(model.front().second, item.words);
        ASSERT_EQ(payload(item.id, item.words),
                  std::vector<std::uint64_t>(item.payload, item.payload + item.words));
        log.pop(log.front());
        model.pop_front();
      }
      ASSERT_EQ(model.empty() ? 0 : model.front().first, log.front().id);
    }
    EXPECT_GT(id, 1000U / scale);
  }  // what is left, some of it by pointer, is freed
}

// DudeTM-Inf: it is never full, and what is read is freed.
TEST(VolatileLog, WithoutABoundGoesOnInLargerRings) {
  VolatileLog log(64, true);
  std::uint64_t read = 0, id = 0;
  std::mt19937_64 random(8);
  for (int phase = 0; phase < 6; ++phase) {
    for (unsigned i = 0; i < 3000 / scale; ++i) {
      const std::uint64_t n = random() % 40;
      ASSERT_TRUE(log.fits(n));
      log.prepare(n);
      if (random() % 5 == 0) log.prepare(n);  // one that was rolled back came between
      ++id;
      log.push(id, payload(id, n).data(), n);
    }
    for (unsigned i = 0; i < 2500 / scale; ++i) {
      const auto item = log.front();
      ASSERT_EQ(++read, item.id);
      ASSERT_EQ(payload(item.id, item.words),
                std::vector<std::uint64_t>(item.payload, item.payload + item.words));
      log.pop(log.front());
    }
  }
  while (log.front().id != 0) {
    ASSERT_EQ(++read, log.front().id);
    log.pop(log.front());
  }
  EXPECT_EQ(id, read);
}

TEST(VolatileLog, WithoutABoundIsReadWhileItGrows) {
  VolatileLog log(64, true);
  constexpr std::uint64_t all = 200000 / scale;
  std::thread reader([&] {
    for (std::uint64_t next = 1; next <= all;) {
      const auto item = log.front();
      if (item.id == 0) continue;
      ASSERT_EQ(next, item.id);
      ASSERT_EQ(next % 7, item.words);
      ASSERT_TRUE(item.words == 0 || item.payload[0] == next << 20);
      log.pop(log.front());
      ++next;
    }
  });
  for (std::uint64_t id = 1; id <= all; ++id) {
    log.prepare(id % 7);
    log.push(id, payload(id, id % 7).data(), id % 7);
  }
  reader.join();
}

TEST(VolatileLog, AnEmptyLogFitsEveryTransaction) {
  VolatileLog log(64);
  for (std::uint64_t n = 0; n < 10000; n = n * 3 / 2 + 1) {
    ASSERT_TRUE(log.fits(n)) << n;
    log.prepare(n);
    log.push(n + 1, payload(n + 1, n).data(), n);
    ASSERT_EQ(n + 1, log.front().id);
    log.pop(log.front());
    ASSERT_EQ(0U, log.front().id);
  }
}

TEST(VolatileLog, AFullOneSaysSo) {
  VolatileLog log(64);
  std::uint64_t id = 0;
  while (log.fits(6)) {
    ++id;
    log.push(id, payload(id, 6).data(), 6);
  }
  EXPECT_GE(id, 64U / 8 - 1);
  for (std::uint64_t i = 1; i <= id; ++i) {
    ASSERT_EQ(i, log.front().id);
    log.pop(log.front());
  }
  EXPECT_TRUE(log.fits(6));
}

TEST(VolatileLog, AWriterAndAReaderTogether) {
  VolatileLog log(512);
  const std::uint64_t last = 100000 / scale;
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    for (std::uint64_t id = 1; id <= last;) {
      const auto item = log.front();
      if (item.id == 0) {
        std::this_thread::yield();
        continue;
      }
      if (item.id != id || item.words != id % 200) ++wrong;
      for (std::uint64_t i = 0; i < item.words; ++i)
        wrong += item.payload[i] == (id << 20 | i) ? 0 : 1;
      log.pop(log.front());
      ++id;
    }
  });
  for (std::uint64_t id = 1; id <= last; ++id) {
    const std::uint64_t n = id % 200;  // more than a quarter of the ring: by pointer
    while (!log.fits(n)) std::this_thread::yield();
    log.prepare(n);
    log.push(id, payload(id, n).data(), n);
  }
  reader.join();
  EXPECT_EQ(0U, wrong);
}

}  // namespace
}  // namespace perdure::log::testing
