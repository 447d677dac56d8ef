// SPDX-License-Identifier: BSD-3-Clause
//
// What a reader shows is durable (FOLLOW-4). The library's calls of fdatasync come here (--wrap).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/readers/bank.hpp"
#include "tests/readers/process.hpp"
#include "tests/support/comes.hpp"

namespace {

// Both processes share it.
struct Shared {
  std::atomic<bool> hold{false};        // the writer's syncs do not return
  std::atomic<std::uint64_t> begun{0};  // of the writer's syncs
  std::atomic<std::uint64_t> reader_syncs{0};
};
Shared* shared = nullptr;
bool writes = false;  // this is the writer's process

}  // namespace

extern "C" {
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd) {
  if (shared != nullptr && writes) {
    ++shared->begun;
    while (shared->hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } else if (shared != nullptr) {
    ++shared->reader_syncs;
  }
  return __real_fdatasync(fd);
}
}

namespace perdure {
namespace {

using namespace std::chrono_literals;
using test::Bank;
using test::BankPool;
using test::Line;
using test::Process;

class ReadersDurable : public testing::Test {
 protected:
  ReadersDurable() {
    if (shared == nullptr)
      shared = new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
    path_ = testing::TempDir() + "/readers_durable_" + std::to_string(::getpid());
    std::filesystem::remove(path_);
  }
  ~ReadersDurable() override { std::filesystem::remove(path_); }
  [[nodiscard]] Options options(bool reads) const {
    Options o;
    o.read_only = reads;
    o.medium = "file";
    o.medium_options.direct = false;  // the log is visible in the page cache before its sync
    o.creation.log_size = 1 << 20;
    return o;
  }
  // Answers each number with the id of that transaction; 0 with 0, without one.
  [[nodiscard]] auto writer() const {
    return std::make_unique<Process>([this](Line& line) {
      writes = true;
      auto pool = BankPool::open(path_, options(false));
      test::open_bank(pool);
      (void)test::change_bank(pool, 1000);  // with the feature that its event needs
      for (std::uint64_t n = 0; line.receive(n);)
        line.send(n == 0 ? 0 : test::change_bank(pool, n));
    });
  }
  std::string path_;
};

TEST_F(ReadersDurable, ShowsNothingBeforeTheWritersSync) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(0));
  auto pool = BankPool::open(path_, options(true));
  const std::uint64_t before = pool.refresh();
  shared->hold = true;
  const std::uint64_t begun = shared->begun;
  writer->line().send(1);
  ASSERT_TRUE(test::comes([&] { return shared->begun > begun; }));
  // The record is in the file, whole; the sync that makes it durable has not returned.
  EXPECT_FALSE(pool.wait_for(before + 1, 100ms));
  EXPECT_EQ(before, pool.refresh());
  shared->hold = false;
  std::uint64_t id = 0;
  ASSERT_TRUE(writer->line().receive(id));
  EXPECT_TRUE(pool.wait_for(id, 10s));
}

// The same of events.
TEST_F(ReadersDurable, ReturnsNoEventBeforeTheWritersSync) {
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(0));
  auto stream = open_events(path_);
  shared->hold = true;
  const std::uint64_t begun = shared->begun;
  writer->line().send(1);
  ASSERT_TRUE(test::comes([&] { return shared->begun > begun; }));
  Event event;
  EXPECT_FALSE(stream.next(event, 100ms));
  shared->hold = false;
  std::uint64_t id = 0;
  ASSERT_TRUE(writer->line().receive(id));
  ASSERT_TRUE(stream.next(event, 10s));
  EXPECT_EQ(id, event.position.id);
}

// Of a record that a killed writer has left nobody knows whether it is durable.
TEST_F(ReadersDurable, SyncsWhatAKilledWriterHasLeft) {
  auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(0));
  auto pool = BankPool::open(path_, options(true));
  const std::uint64_t before = pool.refresh();
  shared->hold = true;
  const std::uint64_t begun = shared->begun, syncs = shared->reader_syncs;
  writer->line().send(1);
  ASSERT_TRUE(test::comes([&] { return shared->begun > begun; }));
  writer->kill(SIGKILL);
  EXPECT_EQ(-SIGKILL, writer->wait());
  shared->hold = false;
  EXPECT_TRUE(pool.wait_for(before + 1, 10s));
  EXPECT_GT(shared->reader_syncs, syncs);
}

// In the strict order nobody says what is durable.
TEST_F(ReadersDurable, SyncsInTheStrictOrder) {
  {
    Options strict = options(false);
    strict.medium = "emulated";
    strict.creation.threads = 2;
    auto pool = BankPool::open(path_, strict);
    test::open_bank(pool);
    ASSERT_EQ(pool::CommitOrder::strict, pool.header().order);
  }
  const auto writer = this->writer();
  ASSERT_EQ(0U, writer->ask(0));
  auto pool = BankPool::open(path_, options(true));
  for (std::uint64_t n = 1; n < 20; ++n) {
    const std::uint64_t syncs = shared->reader_syncs;
    const std::uint64_t id = writer->ask(n);
    ASSERT_TRUE(pool.wait_for(id, 10s));
    ASSERT_GT(shared->reader_syncs, syncs) << n;
  }
}

}  // namespace
}  // namespace perdure
