// SPDX-License-Identifier: BSD-3-Clause
//
// Which threads have which logs (engine/thread_logs.hpp): a log belongs to a thread from its first
// record to the thread's end, no log has two writers, and threads share the last log only where all
// others are leased to threads that live.
#include "perdure/engine/thread_logs.hpp"

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "tests/engine/suite.hpp"

namespace perdure::engine {
namespace {

struct Log {
  int number;
  std::uint64_t records = 0;  // not atomic: a log has one writer
};

class ThreadLogsTest : public ::testing::Test {
 protected:
  using Logs = ThreadLogs<Log>;

  void make(int count) {
    for (int i = 0; i < count; ++i) logs_.add(Log{i});
  }
  /// The calling thread's, as an engine's transactions have it.
  Logs::Use& use() {
    return uses_.get([this](int slot) { return std::make_unique<Logs::Use>(logs_, slot); });
  }
  /// Writes a record; the number of the log that has it.
  int write() {
    Logs::Use& mine = use();
    (void)mine.begin();
    EXPECT_TRUE(mine.ours());
    ++mine.log().records;
    const int number = mine.log().number;
    mine.end();
    return number;
  }

  Logs logs_;
  Transactions<Logs::Use> uses_;
};

TEST_F(ThreadLogsTest, AThreadThatOnlyReadsHasNone) {
  make(3);
  const Logs::Use& reader = use();
  EXPECT_FALSE(reader.ours());
  int first = -1, second = -1;
  std::thread([&] {
    first = write();
    std::thread([&] { second = write(); }).join();
    EXPECT_EQ(0, write()) << "a thread keeps its log";
  }).join();
  EXPECT_EQ(0, first);
  EXPECT_EQ(1, second);
}

TEST_F(ThreadLogsTest, BeginSaysThatTheLogMayBeAnother) {
  make(2);
  EXPECT_TRUE(use().begin());
  EXPECT_FALSE(use().begin());
  use().end();
  EXPECT_FALSE(use().begin());
}

TEST_F(ThreadLogsTest, TheLogOfAThreadThatHasEndedIsTakenByTheNext) {
  make(2);
  for (int i = 0; i < 5; ++i) {
    int number = -1;
    std::thread([&] { number = write(); }).join();
    EXPECT_EQ(0, number);
  }
  EXPECT_EQ(0, write());
  int shared = -1;
  std::thread([&] { shared = write(); }).join();
  EXPECT_EQ(1, shared) << "this thread has the other one";
}

// The thread takes over the number of one that had a log, which another thread has taken since.
TEST_F(ThreadLogsTest, ANumberThatIsTakenOverHasNoLogOfAnotherThread) {
  make(2);
  std::barrier step(2);
  std::thread first([&] {
    EXPECT_EQ(0, write());
    step.arrive_and_wait();
  });
  step.arrive_and_wait();
  first.join();
  EXPECT_EQ(0, write()) << "taken from the number of the thread that has ended";
  std::thread([&] {
    EXPECT_FALSE(use().ours());
    EXPECT_EQ(1, write());
  }).join();
}

// If the second thread waited for its turn, this test would not end.
TEST_F(ThreadLogsTest, AThreadThatWouldWaitTakesALogThatHasBecomeFree) {
  make(2);
  std::barrier step(3);
  std::thread owner([&] {
    EXPECT_EQ(0, write());
    step.arrive_and_wait();
    step.arrive_and_wait();  // the others have found the last log
    step.arrive_and_drop();
  });
  std::thread waits([&] {
    step.arrive_and_wait();
    EXPECT_EQ(1, write());
    step.arrive_and_wait();
    step.arrive_and_wait();  // the owner has ended, and the turn at the last log is taken
    EXPECT_EQ(0, write());
  });
  step.arrive_and_wait();
  EXPECT_EQ(1, write());
  step.arrive_and_wait();
  owner.join();
  EXPECT_FALSE(use().begin());
  step.arrive_and_wait();
  waits.join();
  use().end();
}

// Threads come and go, and each log counts its records without atomics: two writers would lose some
// (and TSan would see them).
TEST_F(ThreadLogsTest, NoLogHasTwoWriters) {
  make(4);
  constexpr int lanes = 6;
  const int lives = 200 / static_cast<int>(test::scale), records = 50;
  std::vector<std::thread> threads;
  for (int lane = 0; lane < lanes; ++lane)
    threads.emplace_back([&] {
      for (int life = 0; life < lives; ++life)
        std::thread([&] {
          for (int i = 0; i < records; ++i) write();
        }).join();
    });
  for (std::thread& t : threads) t.join();
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < logs_.size(); ++i) all += logs_[i].records;
  EXPECT_EQ(static_cast<std::uint64_t>(lanes * lives * records), all);
}

}  // namespace
}  // namespace perdure::engine
