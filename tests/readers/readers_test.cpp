// SPDX-License-Identifier: BSD-3-Clause
//
// A pool that is read beside the process that writes it: every state that a view sees is whole and
// was durable, through checkpoints, growth, laps of the log, trim, clean closes, crashes and new
// sessions of the writer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "perdure/engine/follow/follower.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tests/readers/bank.hpp"
#include "tests/readers/process.hpp"
#include "tests/support/comes.hpp"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using test::Bank;
using test::BankPool;
using test::Line;
using test::Process;

// What the writer's process is asked for.
enum Command : std::uint64_t {
  open_it,
  close_it,
  checkpoint,
  trim,
  run,
  step = 1000,
  put = 1000000
};

struct How {
  std::string name, medium;
  Durability durability;
};

class Readers : public testing::TestWithParam<How> {
 protected:
  Readers() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("readers_") + test->name() + "_" + std::to_string(::getpid());
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = std::filesystem::path(testing::TempDir()) / name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "pool").string();
  }
  ~Readers() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Options options(bool reads) const {
    Options o;
    o.read_only = reads;
    o.medium = GetParam().medium;
    o.durability = GetParam().durability;
    o.creation.log_size = 1 << 20;
    o.creation.threads = 2;
    o.readers.writer_patience = patience_;
    return o;
  }
  [[nodiscard]] BankPool reader() const { return BankPool::open(path_, options(true)); }

  // Answers `step + n` with the id of transaction n, `run` with how many transactions of two
  // threads it did until the next command, `put + n` with the id of the transaction that puts text
  // n, and all others with 0.
  void write(Line& line) const {
    std::optional<BankPool> pool;
    std::uint64_t done = 0;
    for (std::uint64_t command = 0; line.receive(command);) {
      std::uint64_t answer = 0;
      if (command == open_it) {
        pool.emplace(BankPool::open(path_, options(false)));
        test::open_bank(*pool);
      } else if (command == close_it) {
        pool->close();
        pool.reset();
      } else if (command == checkpoint) {
        pool->checkpoint();
      } else if (command == trim) {
        for (Trimmed t{0, true}; t.more;) t = pool->trim();
      } else if (command == run) {
        line.send(0);
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> n{done};
        const auto work = [&] {
          while (!stop) (void)test::change_bank(*pool, n++);
        };
        std::thread one(work), two(work);
        (void)line.receive(command);
        stop = true;
        one.join(), two.join();
        answer = n - done;
        done = n;
      } else if (command >= put) {
        answer = test::grow_bank(*pool, command - put);
      } else {
        answer = test::change_bank(*pool, command - step);
        done = command - step + 1;
      }
      line.send(answer);
    }
  }
  [[nodiscard]] auto writer() {
    return std::make_unique<Process>([this](Line& line) { write(line); });
  }
  // Reads a state. Returns the number of transactions that it has.
  static std::uint64_t changes_in(BankPool& pool) {
    std::uint64_t changes = 0;
    std::string wrong;
    pool.view([&](rtx& tx, const Bank& bank) { wrong = test::wrong_with(tx, bank, changes); });
    EXPECT_EQ("", wrong);
    return changes;
  }

  std::filesystem::path folder_;
  std::string path_;
  std::chrono::milliseconds patience_{50};
};

TEST_P(Readers, SeesEachTransaction) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  EXPECT_EQ(0U, changes_in(pool));
  for (std::uint64_t n = 0; n < 300; ++n) {
    const std::uint64_t id = writer->ask(step + n);
    ASSERT_TRUE(pool.wait_for(id, 10s)) << n;
    EXPECT_EQ(id, pool.durable_id());
    ASSERT_EQ(n + 1, changes_in(pool));
    if (n % 50 == 0) {
      const CheckReport report = pool.check();
      EXPECT_TRUE(report.ok()) << report.problems.front();
    }
    if (n % 70 == 0) {
      ASSERT_EQ(0U, writer->ask(checkpoint));
    }
  }
  EXPECT_FALSE(pool.wait_for(pool.durable_id() + 1, 20ms));
  EXPECT_EQ(Code::read_only, pool.try_update([](tx&, Bank&) {}).code());
}

// Each record is read with the pool as long as it was before: blocks lie in spans that begin before
// that end, and end after it.
TEST_P(Readers, FollowsGrowthInStepsOfOneTransaction) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  const std::uint64_t before = pool.stats().data_bytes;
  for (std::uint64_t n = 300; n < 6000; ++n) {
    const std::uint64_t id = writer->ask(put + n);
    ASSERT_TRUE(pool.wait_for(id, 10s)) << n;
    if (n % 200 == 0) {
      EXPECT_EQ(0U, changes_in(pool));
    }
  }
  EXPECT_LT(before, pool.stats().data_bytes);
}

TEST_P(Readers, SeesWholeStatesBesideAWriter) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  ASSERT_EQ(0U, writer->ask(run));
  std::uint64_t last = 0;
  const auto end = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < end) {
    const std::uint64_t now = changes_in(pool);
    EXPECT_GE(now, last);
    last = now;
  }
  const std::uint64_t done = writer->ask(0);
  EXPECT_TRUE(test::comes([&] { return pool.refresh(), changes_in(pool) == done; }));
  const Stats stats = pool.stats();
  std::printf("%llu transactions, %llu records read, attached %llu times, overtaken %llu times\n",
              (unsigned long long)done, (unsigned long long)stats.followed_records,
              (unsigned long long)stats.attached, (unsigned long long)stats.overtaken);
}

// No checkpoint waits: the reader is overtaken again and again, and never shows a mixture.
TEST_P(Readers, SeesWholeStatesWhereNobodyWaits) {
  patience_ = 0ms;
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  ASSERT_EQ(0U, writer->ask(run));
  std::uint64_t last = 0, seen = 0, expired = 0;
  const auto end = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < end) try {
      const std::uint64_t now = changes_in(pool);
      EXPECT_GE(now, last);
      last = now;
      ++seen;
      const Snapshot<Bank> held = pool.snapshot();
      for (int i = 0; i < 20; ++i) {
        std::uint64_t changes = 0;
        std::string wrong;
        held.view([&](rtx& tx, const Bank& bank) { wrong = test::wrong_with(tx, bank, changes); });
        ASSERT_EQ("", wrong);
      }
    } catch (const error& e) {
      EXPECT_TRUE(e.code() == Code::expired || e.code() == Code::busy) << e.what();
      ++expired;
    }
  EXPECT_NE(0U, seen);
  EXPECT_NE(0U, expired + pool.stats().overtaken);
  (void)writer->ask(0);
}

// While a view is open, the log is lapped and the data region changes.
TEST_P(Readers, ALongViewStaysAtItsState) {
  patience_ = 10s;  // on a busy machine, too
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  std::uint64_t id = 0;
  for (std::uint64_t n = 0; n < 20; ++n) id = writer->ask(step + n);
  auto pool = reader();
  ASSERT_TRUE(pool.wait_for(id, 10s));
  {
    const Snapshot<Bank> held = pool.snapshot();
    ASSERT_EQ(0U, writer->ask(run));
    std::uint64_t changes = 0;
    std::string wrong;
    const auto end = std::chrono::steady_clock::now() + 2s;
    while (std::chrono::steady_clock::now() < end) {
      held.view([&](rtx& tx, const Bank& bank) { wrong += test::wrong_with(tx, bank, changes); });
      ASSERT_EQ("", wrong);
      ASSERT_EQ(20U, changes);
      ASSERT_EQ(20U, changes_in(pool));
    }
    const CheckReport report = held.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
    EXPECT_EQ(0U, pool.stats().overtaken);
  }
  const std::uint64_t done = writer->ask(0);
  EXPECT_TRUE(test::comes([&] { return pool.refresh(), changes_in(pool) == done + 20; }));
}

TEST_P(Readers, FollowsThroughSessions) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  std::uint64_t n = 0;
  for (int session = 0; session < 4; ++session) {
    for (int i = 0; i < 30; ++i, ++n) {
      const std::uint64_t id = writer->ask(step + n);
      ASSERT_TRUE(pool.wait_for(id, 10s)) << n;
      ASSERT_EQ(n + 1, changes_in(pool));
    }
    ASSERT_EQ(0U, writer->ask(close_it));
    ASSERT_EQ(n, changes_in(pool));  // nobody writes it
    if (session % 2 == 0) {
      pool = BankPool::open((folder_ / "other").string(), {});  // one opening a process
      pool = reader();
      ASSERT_EQ(n, changes_in(pool));
    }
    // A reader keeps no writer away.
    ASSERT_EQ(0U, writer->ask(open_it));
  }
}

TEST_P(Readers, FollowsAWriterThatDies) {
  std::uint64_t before = 0;
  auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  for (int round = 0; round < 4; ++round) {
    ASSERT_EQ(0U, writer->ask(run));
    const auto end = std::chrono::steady_clock::now() + 200ms;
    while (std::chrono::steady_clock::now() < end) {
      const std::uint64_t now = changes_in(pool);
      ASSERT_GE(now, before);
      before = now;
    }
    writer->kill(SIGKILL);
    EXPECT_EQ(-SIGKILL, writer->wait());
    // What it has left is read without a recovery, which would have to write.
    (void)pool.refresh();
    std::this_thread::sleep_for(20ms);
    const std::uint64_t id = pool.refresh(), left = changes_in(pool);
    ASSERT_GE(left, before);
    pool = BankPool::open((folder_ / "other").string(), {});
    pool = reader();
    EXPECT_EQ(id, pool.durable_id());
    EXPECT_EQ(left, changes_in(pool));
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
    writer = this->writer();
    ASSERT_EQ(0U, writer->ask(open_it));
    EXPECT_EQ(left, changes_in(pool)) << "what recovery finds is what the reader has shown";
    before = left;
  }
}

TEST_P(Readers, FollowsThroughATrim) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  for (std::uint64_t n = 0; n < 400; ++n) {
    const std::uint64_t id = writer->ask(step + n);
    if (n % 100 == 99) {
      ASSERT_EQ(0U, writer->ask(trim));
      ASSERT_TRUE(pool.wait_for(id, 10s));
      ASSERT_EQ(n + 1, changes_in(pool));
      const CheckReport report = pool.check();
      EXPECT_TRUE(report.ok()) << report.problems.front();
    }
  }
}

// READER-2: an opening changes `sequence` before recovery may change the data region.
TEST_P(Readers, AStateThatIsHeldEndsWithAnOpening) {
  {
    const auto writer = this->writer();
    ASSERT_EQ(0U, writer->ask(open_it));
    (void)writer->ask(step);
    ASSERT_EQ(0U, writer->ask(close_it));
  }
  auto pool = reader();
  const Snapshot<Bank> held = pool.snapshot();
  const auto read = [&] {
    std::uint64_t changes = 0;
    std::string wrong;
    held.view([&](rtx& tx, const Bank& bank) { wrong = test::wrong_with(tx, bank, changes); });
    EXPECT_EQ("", wrong);
    EXPECT_EQ(1U, changes);
  };
  read();
  Process opening([this](Line& line) {
    pool::OpenFile how;
    how.path = path_;
    how.create = false;
    how.medium = GetParam().medium;
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    auto file = pool::OpenPool::open(how, who).value();
    for (std::uint64_t n = 0; line.receive(n);) {
      file->hold_readers().or_throw();
      line.send(0);
    }
  });
  ASSERT_EQ(0U, opening.ask(0));
  try {
    read();
    FAIL() << "it was read while the data region may change";
  } catch (const error& e) {
    EXPECT_EQ(Code::expired, e.code()) << e.what();
  }
}

// Version 2 of the program takes the pool over, while version 1 reads it.
TEST_P(Readers, EndsWhenTheLayoutChanges) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  const std::uint64_t id = writer->ask(step);
  auto pool = reader();
  ASSERT_TRUE(pool.wait_for(id, 10s));
  EXPECT_EQ(1U, changes_in(pool));
  ASSERT_EQ(0U, writer->ask(close_it));
  const Process newer([this](Line& line) {
    auto own = Pool<test::NewerBank>::open(path_, options(false));
    own.update([](tx& tx, test::NewerBank& bank) { tx(bank.more) = 1; });
    for (std::uint64_t n = 0; line.receive(n);) line.send(0);
  });
  // Not once, and never again after that.
  EXPECT_TRUE(test::comes([&] {
    try {
      EXPECT_EQ(1U, changes_in(pool));
      return false;
    } catch (const error& e) {
      return e.code() == Code::expired;
    }
  }));
  for (int i = 0; i < 3; ++i) EXPECT_THROW(pool.view([](rtx&, const Bank&) {}), error);
  EXPECT_THROW((void)pool.snapshot(), error);
}

// A reader that comes as soon as the file has its name, before the first session.
TEST_P(Readers, ComesAtTheBeginning) {
  for (int round = 0; round < 20; ++round) {
    std::filesystem::remove(path_);
    const auto writer = this->writer();
    writer->line().send(open_it);
    Result<BankPool> pool = BankPool::try_open(path_, options(true));
    ASSERT_TRUE(test::comes([&] {
      if (pool.ok()) return true;
      pool = BankPool::try_open(path_, options(true));
      return pool.ok();
    })) << pool.status().message();
    std::uint64_t opened = 1;
    ASSERT_TRUE(writer->line().receive(opened));
    ASSERT_EQ(0U, opened);
    const std::uint64_t id = writer->ask(step);
    ASSERT_TRUE(pool->wait_for(id, 10s));
    ASSERT_EQ(1U, changes_in(*pool));
  }
}

// The writer has closed its pool and keeps the closed object.
TEST_P(Readers, ReadsBesideAClosedPoolObject) {
  const Process writer([this](Line& line) {
    auto own = BankPool::open(path_, options(false));
    test::open_bank(own);
    for (std::uint64_t n = 0; line.receive(n);) {
      if (n == 1) own.close();
      line.send(0);
    }
  });
  auto& ask = const_cast<Process&>(writer);
  ASSERT_EQ(0U, ask.ask(0));
  auto pool = reader();
  EXPECT_EQ(0U, changes_in(pool));
  ASSERT_EQ(0U, ask.ask(1));
  EXPECT_EQ(0U, changes_in(pool));
  std::this_thread::sleep_for(20ms);
  EXPECT_NE(0U, pool.refresh());
  pool = BankPool::open((folder_ / "other").string(), {});
  pool = reader();
  EXPECT_EQ(0U, changes_in(pool));
}

// The pool ends while other threads read a snapshot of it.
TEST_P(Readers, ThePoolWaitsForReadsOfItsSnapshots) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = std::make_unique<BankPool>(reader());
  auto held = pool->snapshot();
  const auto unread = pool->snapshot();
  EXPECT_THROW(pool->close(), error);
  std::atomic<bool> inside{false};
  std::thread thread([&] {
    for (int i = 0; i < 1000; ++i) try {
        held.view([&](rtx& tx, const Bank& bank) {
          std::uint64_t changes = 0;
          EXPECT_EQ("", test::wrong_with(tx, bank, changes));
          inside = true;
        });
      } catch (const error& e) {
        EXPECT_EQ(Code::closed, e.code()) << e.what();
        return;
      }
  });
  while (!inside) std::this_thread::yield();
  EXPECT_FALSE(unread.expired());
  pool = nullptr;
  EXPECT_TRUE(unread.expired());
  thread.join();
  EXPECT_TRUE(held.expired());
  EXPECT_THROW(held.view([](rtx&, const Bank&) {}), error);
}

TEST_P(Readers, AThousandReadersLeaveNothing) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  { auto pool = reader(); }
  const auto fds = descriptors();
  const auto maps = mappings();
  for (std::uint64_t n = 0; n < 250; ++n) {  // of each of four configurations
    const std::uint64_t id = writer->ask(step + n);
    auto pool = reader();
    ASSERT_TRUE(pool.wait_for(id, 10s));
  }
  EXPECT_EQ(fds, descriptors());
  EXPECT_LE(mappings(), maps + 100);  // the allocator's
}

TEST_P(Readers, ManyThreadsRead) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(open_it));
  auto pool = reader();
  ASSERT_EQ(0U, writer->ask(run));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      std::uint64_t last = 0;
      while (!stop) {
        const std::uint64_t now = changes_in(pool);
        EXPECT_GE(now, last);
        last = now;
      }
    });
  std::this_thread::sleep_for(2s);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  (void)writer->ask(0);
}

std::string name_of(const testing::TestParamInfo<How>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Readers,
                         testing::Values(How{"file", "file", Durability::durable},
                                         How{"file_group", "file", Durability::async},
                                         How{"memory", "emulated", Durability::durable},
                                         How{"memory_group", "emulated", Durability::group}),
                         name_of);

}  // namespace
}  // namespace perdure
