// SPDX-License-Identifier: BSD-3-Clause
//
// Damage that scrub(), check(), copies and backups find, and that a sound pool never has: beside
// writers in this process and in others, and after kills.
#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <random>
#include <thread>

#include "perdure/backup/restore.hpp"
#include "tests/checksums/bank_pool.hpp"
#include "tests/readers/process.hpp"

namespace perdure {
namespace {

using test::BankPool;
using test::damaged_pages;
using test::Line;
using test::Process;
using testing::ElementsAre;
using testing::HasSubstr;

using Scrub = test::InAFolder;

TEST_F(Scrub, APoolWithoutChecksumsSaysSo) {
  make(10, false);
  BankPool pool = reader();
  const ScrubReport report = pool.scrub();
  EXPECT_FALSE(report.has_checksums);
  EXPECT_EQ(0U, report.pages);
  EXPECT_TRUE(report.ok());
}

TEST_F(Scrub, EveryPageInUseOfANewPoolHasAChecksum) {
  make(400);
  BankPool pool = reader();
  const ScrubReport report = pool.scrub();
  EXPECT_TRUE(report.has_checksums);
  EXPECT_EQ(pages().size(), report.pages);
  EXPECT_GT(report.pages, 100U);
  EXPECT_EQ(0U, report.undecided);
  EXPECT_THAT(report.damaged, testing::IsEmpty());
  EXPECT_THAT(pool.check().problems, testing::IsEmpty());
  EXPECT_EQ(report.pages, pool.check().pages);
}

TEST_F(Scrub, NamesThePageOfEachFlippedBit) {
  make(300);
  const std::vector<std::uint64_t> all = pages();
  ASSERT_GT(all.size(), 50U);
  std::mt19937_64 random(1);
  BankPool pool = reader();
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t page = all[random() % all.size()];
    const auto bit = static_cast<unsigned>(random() % 8);
    std::uint64_t byte = random() % 4096;
    if (page == 0 && byte / 64 == 1) byte += 64;  // the reader words are not data
    flip(page * 4096 + byte, bit);
    EXPECT_THAT(damaged_pages(pool.scrub()), ElementsAre(page)) << byte;
    flip(page * 4096 + byte, bit);
  }
  EXPECT_TRUE(pool.scrub().ok());
  // Also in the directory's page, and in a checksum itself.
  flip(4096, 3);
  EXPECT_THAT(damaged_pages(pool.scrub()), ElementsAre(1U));
  flip(4096, 3);
  flip(header().checksums_offset + all.back() * 8, 0);
  EXPECT_THAT(damaged_pages(pool.scrub()), ElementsAre(all.back()));
}

TEST_F(Scrub, CheckCopiesAndBackupsRefuseDamage) {
  make(300);
  const std::uint64_t page = pages().back();
  flip(page * 4096 + 100, 0);
  BankPool pool = open();
  const std::vector<std::string> problems = pool.check().problems;
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.back(), HasSubstr("its checksum is"));
  for (const auto& copy :
       std::vector<std::function<void()>>{[&] { pool.snapshot().copy_to(path_ + ".copy"); },
                                          [&] { pool.backup((folder_ / "backups").string()); }}) {
    try {
      copy();
      ADD_FAILURE() << "damage was copied";
    } catch (const error& e) {
      EXPECT_EQ(Code::corrupt, e.code());
      EXPECT_THAT(e.what(), HasSubstr("1 damaged pages"));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".copy"));
}

TEST_F(Scrub, CopiesAndRestoredPoolsHaveChecksums) {
  make(300);
  {
    BankPool pool = open();
    pool.snapshot().copy_to(path_ + ".copy");
    pool.backup((folder_ / "backups").string());
  }
  restore((folder_ / "backups").string(), path_ + ".restored");
  std::filesystem::remove(path_);
  for (const char* ending : {".copy", ".restored"}) {
    std::filesystem::rename(path_ + ending, path_);
    const std::vector<std::uint64_t> all = pages();
    EXPECT_GT(all.size(), 50U) << ending;
    {
      BankPool pool = reader();
      const ScrubReport report = pool.scrub();
      EXPECT_TRUE(report.ok()) << ending;
      EXPECT_LT(report.without, all.size()) << ending;  // holes: chunks of a span without blocks
      EXPECT_EQ(all.size(), report.pages);
    }
    flip(all[all.size() / 2] * 4096 + 77, 1);
    BankPool pool = reader();
    EXPECT_THAT(damaged_pages(pool.scrub()), ElementsAre(all[all.size() / 2])) << ending;
    std::filesystem::remove(path_);
  }
}

// What is damaged stays so, although a checkpoint writes to another line of the page.
TEST_F(Scrub, ACheckpointDoesNotHideDamage) {
  make(300);
  const std::uint64_t page = header().root_offset / 4096;
  flip(page * 4096 + 4000, 5);  // behind the catalog and the root object, in the same page
  BankPool pool = open();
  ASSERT_THAT(damaged_pages(pool.scrub()), ElementsAre(page));
  for (std::uint64_t i = 0; i < 20; ++i) test::change_bank(pool, i);  // `changes` is in the root
  pool.checkpoint();
  EXPECT_THAT(damaged_pages(pool.scrub()), ElementsAre(page));
}

TEST_F(Scrub, IsRightBesideThreadsThatWrite) {
  BankPool pool = open();
  test::open_bank(pool);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = t; !stop; i += 2) test::change_bank(pool, i);
    });
  threads.emplace_back([&] {
    while (!stop) pool.checkpoint();
  });
  std::uint64_t pages = 0;
  for (int i = 0; i < 50; ++i) {
    const ScrubReport report = pool.scrub();
    EXPECT_TRUE(report.ok()) << pool::text_of(report.damaged.front());
    pages += report.pages;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(pages, 1000U);
}

// What the second process is asked for.
enum Command : std::uint64_t { start, checkpoint, close_it };

void write_on_request(const std::string& path, const Options& options, Line& line) {
  std::optional<BankPool> pool;
  std::atomic<bool> stop{false};
  std::thread thread;
  for (std::uint64_t command = 0; line.receive(command);) {
    if (command == start) {
      pool.emplace(BankPool::open(path, options));
      test::open_bank(*pool);
      thread = std::thread([&] {
        for (std::uint64_t i = 0; !stop; ++i) {
          test::change_bank(*pool, i);
          if (i % 100 == 0) pool->checkpoint();
        }
      });
    }
    if (command == close_it) {
      stop = true;
      thread.join();
      (void)pool->close();
    }
    line.send(0);
  }
  ::_exit(0);
}

TEST_F(Scrub, IsRightBesideAnotherProcessThatWritesAndAfterItsKill) {
  for (int round = 0; round < 5; ++round) {
    Process writer([&](Line& line) { write_on_request(path_, with_checksums(), line); });
    ASSERT_EQ(0U, writer.ask(start));
    {
      BankPool pool = reader();
      std::uint64_t pages = 0;
      for (int i = 0; i < 20; ++i) {
        const ScrubReport report = pool.scrub();
        ASSERT_TRUE(report.ok()) << pool::text_of(report.damaged.front());
        pages += report.pages;
      }
      EXPECT_GT(pages, 100U);
    }
    writer.kill(SIGKILL);
    EXPECT_EQ(-SIGKILL, writer.wait());
    {
      BankPool pool = reader();  // what the killed process left
      EXPECT_TRUE(pool.scrub().ok());
    }
    BankPool pool = open();  // what recovery makes of it
    const ScrubReport report = pool.scrub();
    EXPECT_TRUE(report.ok()) << pool::text_of(report.damaged.front());
    EXPECT_THAT(pool.check().problems, testing::IsEmpty());
  }
}

TEST_F(Scrub, TellsHowFarItIsAndKeepsToARate) {
  make(300);
  BankPool pool = reader();
  std::uint64_t last = 0, all = 0;
  ScrubOptions options;
  options.bytes_per_second = std::uint64_t{1} << 40;
  options.progress = [&](std::uint64_t done, std::uint64_t bytes) {
    EXPECT_GE(done, last);
    last = done;
    all = bytes;
  };
  EXPECT_TRUE(pool.scrub(options).ok());
  EXPECT_EQ(all, last);
  EXPECT_GT(all, 0U);
  options.progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("enough"); };
  EXPECT_THROW((void)pool.scrub(options), std::runtime_error);
}

}  // namespace
}  // namespace perdure
