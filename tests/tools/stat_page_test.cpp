// SPDX-License-Identifier: BSD-3-Clause
//
// The page of live counters: one process writes it, another reads it, it is unlinked at the end; a
// page that a killed owner left is recognised and replaced.
#include "perdure/engine/stat_page.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>

namespace perdure::engine {
namespace {

class StatPageTest : public testing::Test {
 protected:
  StatPageTest() {
    for (std::size_t i = 0; i < 16; ++i)
      uuid_[i] = static_cast<std::uint8_t>(static_cast<unsigned>(::getpid()) >> (i % 4 * 8) ^ i);
    std::ofstream(path_) << "pool";
    std::ofstream(copy_) << "pool";
    struct stat copy = {};
    ::stat(copy_.c_str(), &copy);
    of_copy_ = "/dev/shm" + stat_page_name(uuid_, copy.st_ino);
  }
  ~StatPageTest() override {
    std::remove(path_.c_str());
    std::remove(copy_.c_str());
    std::remove(("/dev/shm" + stat_page_name(uuid_)).c_str());
    std::remove(of_copy_.c_str());
  }
  std::uint8_t uuid_[16];
  std::string path_ = testing::TempDir() + "stat-" + std::to_string(::getpid()),
              copy_ = path_ + "-copy", of_copy_;
};

TEST_F(StatPageTest, NameIsTheUuid) {
  const std::uint8_t uuid[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                 0,    1,    2,    3,    4,    5,    6,    0xff};
  EXPECT_EQ(stat_page_name(uuid), "/perdure-01234567-89ab-cdef-0001-0203040506ff");
  EXPECT_EQ(stat_page_name(uuid, 0x1f2), "/perdure-01234567-89ab-cdef-0001-0203040506ff-1f2");
}

TEST_F(StatPageTest, ReaderSeesWhatTheOwnerStoresUntilItEnds) {
  EXPECT_EQ(StatReader::open(uuid_).code(), Code::not_found);
  std::optional<StatWriter> writer(std::in_place, uuid_, path_, "shadow");
  if (!writer->shared()) GTEST_SKIP() << writer->why();
  auto reader = StatReader::open(uuid_);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_TRUE(reader->alive());
  EXPECT_TRUE(reader->belongs_to(path_));
  EXPECT_FALSE(reader->belongs_to(copy_));
  EXPECT_STREQ(reader->head().engine, "shadow");
  EXPECT_EQ(reader->head().updated_ns.load(), 0U);
  writer->page().transactions.commits.store(42, std::memory_order_relaxed);
  writer->touch();
  EXPECT_EQ(reader->section<TransactionCounters>()->commits.load(), 42U);
  EXPECT_NE(reader->head().updated_ns.load(), 0U);
  writer.reset();
  EXPECT_EQ(StatReader::open(uuid_).code(), Code::not_found);
  // A mapping outlives the name.
  EXPECT_EQ(reader->section<TransactionCounters>()->commits.load(), 42U);
}

TEST_F(StatPageTest, AForkedChildDoesNotUnlink) {
  std::optional<StatWriter> writer(std::in_place, uuid_, path_, "shadow");
  if (!writer->shared()) GTEST_SKIP() << writer->why();
  const pid_t child = ::fork();
  if (child == 0) {
    writer.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(StatReader::open(uuid_).ok());
}

TEST_F(StatPageTest, AKilledOwnersPageIsToldAndReplaced) {
  const pid_t child = ::fork();
  if (child == 0) {
    StatWriter writer(uuid_, path_, "undo");
    writer.page().transactions.commits.store(7);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  auto left = StatReader::open(uuid_);
  if (!left.ok()) GTEST_SKIP() << left.status().message();
  EXPECT_FALSE(left->alive());
  EXPECT_EQ(left->section<TransactionCounters>()->commits.load(), 7U);
  StatWriter writer(uuid_, path_, "shadow");
  EXPECT_TRUE(writer.shared()) << writer.why();
  EXPECT_EQ(StatReader::open(uuid_)->section<TransactionCounters>()->commits.load(), 0U);
  EXPECT_EQ(left->section<TransactionCounters>()->commits.load(), 7U);
}

TEST_F(StatPageTest, OldPagesOfKilledOwnersAreSwept) {
  std::uint8_t other[16] = {0xfe};
  std::copy_n(uuid_, 15, other + 1);
  for (const bool old : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      StatWriter writer(other, path_, "shadow");
      writer.touch();
      // The clock's zero is the start of the machine.
      if (old) writer.page().head.updated_ns.store(0);
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    if (!StatReader::open(other).ok()) GTEST_SKIP() << "no /dev/shm";
    StatWriter writer(uuid_, path_, "shadow");
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    EXPECT_EQ(StatReader::open(other).ok(), !old || now.tv_sec < 3600);
  }
  std::remove(("/dev/shm" + stat_page_name(other)).c_str());
}

// A standby on the primary's machine, or a byte copy.
TEST_F(StatPageTest, AFurtherCopyHasAPageOfItsOwn) {
  StatWriter first(uuid_, path_, "shadow");
  if (!first.shared()) GTEST_SKIP() << first.why();
  EXPECT_EQ(StatReader::open(uuid_, copy_).code(), Code::not_found) << "that of the first one";
  {
    StatWriter second(uuid_, copy_, "shadow");
    EXPECT_TRUE(second.shared()) << second.why();
    second.page().transactions.commits.store(1);
    EXPECT_EQ(first.page().transactions.commits.load(), 0U);
    const auto commits = [&](const std::string& path) {
      return StatReader::open(uuid_, path)->section<TransactionCounters>()->commits.load();
    };
    EXPECT_EQ(commits(path_), 0U);
    EXPECT_EQ(commits(copy_), 1U);
    const StatWriter third(uuid_, path_, "shadow");
    EXPECT_FALSE(third.shared());
    EXPECT_NE(third.why().find("has this pool open"), std::string::npos) << third.why();
  }
  EXPECT_EQ(StatReader::open(uuid_, copy_).code(), Code::not_found);
}

TEST_F(StatPageTest, ForeignFilesAreRefusedAndReplaced) {
  const std::string file = "/dev/shm" + stat_page_name(uuid_);
  {
    std::ofstream out(file);
    if (!out) GTEST_SKIP() << "no /dev/shm";
    out << "short";
  }
  EXPECT_EQ(StatReader::open(uuid_).code(), Code::incompatible);
  { std::ofstream(file) << std::string(4096, 'x'); }
  EXPECT_EQ(StatReader::open(uuid_).code(), Code::incompatible);
  StatWriter writer(uuid_, path_, "shadow");
  EXPECT_TRUE(writer.shared()) << writer.why();
  EXPECT_TRUE(StatReader::open(uuid_).ok());
}

/// A page of another build: its sections are what `text` says.
struct Foreign {
  StatHead head;
  std::uint64_t words[32] = {};
};

// A later build has sections that this one does not know, and may lack those that this one knows.
TEST_F(StatPageTest, SectionsAreFoundByTheirTagsWhateverLiesBetween) {
  const std::string file = "/dev/shm" + stat_page_name(uuid_);
  Foreign page;
  page.head.version = StatHead::current_version;
  page.head.magic = StatHead::magic_value;
  page.head.sections = 3;
  page.head.bytes = sizeof page;
  const StatSection unknown{77, 0, 40}, medium{MediumCounters::tag, 0, sizeof(MediumCounters)},
      longer{HeapCounters::tag, 0, 64};
  std::memcpy(page.words, &unknown, sizeof unknown);
  std::memcpy(page.words + 5, &medium, sizeof medium);
  page.words[5 + 2] = 11;  // fences
  std::memcpy(page.words + 5 + sizeof(MediumCounters) / 8, &longer, sizeof longer);
  const auto open_with = [&](auto&& change) {
    Foreign changed;
    std::memcpy(static_cast<void*>(&changed), &page, sizeof page);
    change(changed);
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(&changed), sizeof changed);
    return StatReader::open(uuid_);
  };
  {
    auto reader = open_with([](Foreign&) {});
    if (!reader.ok()) GTEST_SKIP() << reader.status().message();
    ASSERT_NE(nullptr, reader->section<MediumCounters>());
    EXPECT_EQ(11U, reader->section<MediumCounters>()->fences.load());
    EXPECT_NE(nullptr, reader->section<HeapCounters>())
        << "a longer one has the counters that are known";
    EXPECT_EQ(nullptr, reader->section<TransactionCounters>());
  }
  for (const std::uint64_t bytes : {0ULL, 8ULL, 41ULL, 1ULL << 40, ~0ULL}) {
    // Damage: nothing beyond the page is read.
    auto reader = open_with([&](Foreign& p) { p.words[1] = bytes; });
    EXPECT_EQ(nullptr, reader->section<MediumCounters>()) << bytes;
  }
  auto reader =
      open_with([&](Foreign& p) { p.head.bytes = sizeof(StatHead) + 40 + sizeof(StatSection); });
  EXPECT_EQ(nullptr, reader->section<MediumCounters>()) << "it does not lie in the page as a whole";
  auto older = open_with([&](Foreign& p) { p.head.version = 1; });
  EXPECT_EQ(Code::incompatible, older.code()) << "version 1 had no sections";
}

}  // namespace
}  // namespace perdure::engine
