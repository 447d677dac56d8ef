// SPDX-License-Identifier: BSD-3-Clause
//
// The page of live counters: written here, read there, unlinked at the end; what a killed owner left is told apart and replaced.
#include "perdure/engine/stat_page.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>

namespace perdure::engine {
namespace {

class StatPageTest : public testing::Test {
 protected:
  StatPageTest() {
    for (std::size_t i = 0; i < 16; ++i) uuid_[i] = static_cast<std::uint8_t>(static_cast<unsigned>(::getpid()) >> (i % 4 * 8) ^ i);
    std::ofstream(path_) << "pool";
    std::ofstream(copy_) << "pool";
  }
  ~StatPageTest() override {
    std::remove(path_.c_str());
    std::remove(copy_.c_str());
    std::remove(("/dev/shm" + stat_page_name(uuid_)).c_str());
  }
  std::uint8_t uuid_[16];
  std::string path_ = testing::TempDir() + "stat-" + std::to_string(::getpid()), copy_ = path_ + "-copy";
};

TEST_F(StatPageTest, NameIsTheUuid) {
  const std::uint8_t uuid[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 0xff};
  EXPECT_EQ(stat_page_name(uuid), "/perdure-01234567-89ab-cdef-0001-0203040506ff");
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
  EXPECT_STREQ(reader->page().engine, "shadow");
  EXPECT_EQ(reader->page().updated_ns.load(), 0U);
  writer->page().commits.store(42, std::memory_order_relaxed);
  writer->touch();
  EXPECT_EQ(reader->page().commits.load(), 42U);
  EXPECT_NE(reader->page().updated_ns.load(), 0U);
  writer.reset();
  EXPECT_EQ(StatReader::open(uuid_).code(), Code::not_found);
  EXPECT_EQ(reader->page().commits.load(), 42U);  // a mapping outlives the name
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
    writer.page().commits.store(7);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  auto left = StatReader::open(uuid_);
  if (!left.ok()) GTEST_SKIP() << left.status().message();
  EXPECT_FALSE(left->alive());
  EXPECT_EQ(left->page().commits.load(), 7U);
  StatWriter writer(uuid_, path_, "shadow");
  EXPECT_TRUE(writer.shared()) << writer.why();
  EXPECT_EQ(StatReader::open(uuid_)->page().commits.load(), 0U);
  EXPECT_EQ(left->page().commits.load(), 7U);
}

TEST_F(StatPageTest, OldPagesOfKilledOwnersAreSwept) {
  std::uint8_t other[16] = {0xfe};
  std::copy_n(uuid_, 15, other + 1);
  for (const bool old : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      StatWriter writer(other, path_, "shadow");
      writer.touch();
      if (old) writer.page().updated_ns.store(0);  // the clock's zero is when the machine started
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

TEST_F(StatPageTest, AByteCopyOpenElsewhereGetsPrivateMemory) {
  StatWriter first(uuid_, path_, "shadow");
  if (!first.shared()) GTEST_SKIP() << first.why();
  StatWriter second(uuid_, copy_, "shadow");
  EXPECT_FALSE(second.shared());
  EXPECT_NE(second.why().find("same uuid"), std::string::npos) << second.why();
  second.page().commits.store(1);
  second.touch();
  EXPECT_EQ(first.page().commits.load(), 0U);
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

}  // namespace
}  // namespace perdure::engine
