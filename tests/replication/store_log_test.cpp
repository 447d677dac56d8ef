// SPDX-License-Identifier: BSD-3-Clause
//
// A log in a folder: SERVICE-1 with one writer, with threads that race, and with a trim at each
// point of an append.
#include "perdure/replication/store_log.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "perdure/replication/self_test.hpp"

namespace perdure::replication::test {
namespace {

std::string text_of(const Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

class StoreLogs : public ::testing::Test {
 protected:
  StoreLogs() {
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
    store_ = backup::open_folder(folder_, true).value();
    log_ = open_store_log(store_).value();
  }
  ~StoreLogs() override { std::filesystem::remove_all(folder_); }
  static Append append(LogService& log, std::uint64_t at, const std::string& text) {
    return log.append(at, text.data(), text.size()).outcome;
  }
  std::string folder_ = ::testing::TempDir() + "perdure-log-XXXXXX";
  std::shared_ptr<backup::Store> store_;
  std::shared_ptr<LogService> log_;
};

TEST_F(StoreLogs, MessagesAreAppendedAtTheEndAndReadInOrder) {
  EXPECT_EQ(log_->ends()->last, 0U);
  EXPECT_TRUE(log_->read(1, 100)->empty());
  EXPECT_EQ(append(*log_, 2, "too early"), Append::refused);
  EXPECT_EQ(append(*log_, 1, "one"), Append::done);
  EXPECT_EQ(append(*log_, 1, "again"), Append::refused);
  EXPECT_EQ(append(*log_, 2, "two"), Append::done);
  EXPECT_EQ(append(*log_, 3, ""), Append::done);
  const auto all = log_->read(1, 100);
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ(text_of((*all)[0]), "one");
  EXPECT_EQ(text_of((*all)[1]), "two");
  EXPECT_EQ((*all)[2].sequence, 3U);
  EXPECT_EQ(log_->read(1, 3)->size(), 1U) << "no more than was asked for";
  EXPECT_EQ(log_->read(1, 4)->size(), 2U);
  EXPECT_TRUE(log_->read(4, 100)->empty());
  EXPECT_EQ(log_->read(5, 100).code(), Code::not_found);
  const auto again = open_store_log(store_).value();
  EXPECT_EQ(again->ends()->last, 3U);
  EXPECT_EQ(append(*again, 4, "four"), Append::done);
}

TEST_F(StoreLogs, ATrimRemovesFromTheFront) {
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(append(*log_, i, "x"), Append::done);
  EXPECT_TRUE(log_->trim(4).ok());
  EXPECT_EQ(log_->ends()->first, 4U);
  EXPECT_EQ(log_->read(3, 1).code(), Code::expired);
  EXPECT_EQ(log_->read(4, 100)->size(), 2U);
  EXPECT_TRUE(log_->trim(100).ok());
  EXPECT_EQ(log_->ends()->first, 5U) << "the last one stays";
  EXPECT_EQ(append(*log_, 6, "x"), Append::done);
  EXPECT_EQ(append(*open_store_log(store_).value(), 7, "x"), Append::done);
  EXPECT_EQ(append(*log_, 3, "x"), Append::refused);
}

TEST_F(StoreLogs, OfThreadsThatAppendToOnePlaceOneSucceeds) {
  constexpr std::uint64_t places = 60;
  std::vector<std::atomic<int>> winners(places + 1), unknown(places + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto mine = open_store_log(store_).value();
      for (std::uint64_t at = 1; at <= places;) {
        const Append came = append(*mine, at, std::to_string(t));
        if (came == Append::done) ++winners[at];
        // It was trimmed before the append had looked again.
        if (came == Append::unknown) ++unknown[at];
        // The others may be behind.
        if (came == Append::done || mine->ends()->last >= at) ++at;
        if (t == 0 && at % 7 == 0) {
          ASSERT_TRUE(mine->trim(at - 3).ok());
        }
      }
    });
  for (std::thread& t : threads) t.join();
  for (std::uint64_t at = 1; at <= places; ++at) {
    EXPECT_LE(winners[at], 1) << at;
    EXPECT_GE(winners[at] + unknown[at], 1) << at;
  }
  EXPECT_EQ(log_->ends()->last, places);
}

TEST_F(StoreLogs, TheSelfTestPasses) {
  const auto other = open_store_log(store_).value();
  const Status s = self_test(*log_, *other);
  EXPECT_TRUE(s.ok()) << s.message();
}

/// A log that lets every writer win, or none.
class Uncompared final : public LogService {
 public:
  explicit Uncompared(Append outcome) : outcome_(outcome) {}
  AppendAnswer append(std::uint64_t, const void* bytes, std::uint64_t n) override {
    const std::lock_guard lock(mutex_);
    const auto* const first = static_cast<const std::byte*>(bytes);
    last_.assign(first, first + n);
    return {outcome_, {}};
  }
  Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t) override {
    return std::vector<Message>{{from, last_}};
  }
  Result<LogEnds> ends() override { return LogEnds{}; }
  Status trim(std::uint64_t) override { return {}; }
  Result<LogTraits> describe() override { return LogTraits{}; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

 private:
  const std::string name_ = "uncompared";
  const Append outcome_;
  std::mutex mutex_;
  std::vector<std::byte> last_;
};

TEST(SelfTest, NamesALogThatComparesNothing) {
  for (const auto& [outcome, what] : {std::pair(Append::done, "both succeeded"),
                                      std::pair(Append::refused, "both were refused")}) {
    Uncompared log(outcome);
    const Status s = self_test(log, log);
    EXPECT_EQ(s.code(), Code::incompatible);
    EXPECT_NE(s.message().find(what), std::string::npos) << s.message();
  }
  Uncompared silent(Append::unknown);
  EXPECT_EQ(self_test(silent, silent).code(), Code::io);
}

/// A store that does something before one of its calls.
class Interrupted final : public backup::Store {
 public:
  explicit Interrupted(std::shared_ptr<backup::Store> store) : store_(std::move(store)) {}
  Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n) override {
    step();
    return store_->put(name, bytes, n);
  }
  Result<std::vector<std::byte>> get(const std::string& name) override {
    step();
    return store_->get(name);
  }
  Result<bool> has(const std::string& name) override {
    step();
    return store_->has(name);
  }
  Status keep(const std::string& name) override {
    kept.push_back(name);
    return store_->keep(name);
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    step();
    return store_->list(prefix);
  }
  Status remove(const std::string& name) override {
    step();
    return store_->remove(name);
  }
  Result<std::shared_ptr<void>> lock(Use use) override { return store_->lock(use); }
  [[nodiscard]] const std::string& name() const noexcept override { return store_->name(); }
  int at = 0;
  std::function<void()> act;
  std::vector<std::string> kept;  ///< names that keep() was called with

 private:
  void step() {
    if (--at == 0) act();
  }
  std::shared_ptr<backup::Store> store_;
};

// While an append is at each of its points, others append and trim: it is not said to be done, and
// not left in the log (SERVICE-1).
TEST_F(StoreLogs, ATrimAtEachPointOfAnAppendAndOfARead) {
  for (int point = 1; point <= 6; ++point) {
    SCOPED_TRACE(point);
    const std::uint64_t end = log_->ends()->last;
    const auto interrupted = std::make_shared<Interrupted>(store_);
    const auto slow = open_store_log(interrupted).value();
    bool acted = false;
    interrupted->at = point;
    interrupted->act = [&] {
      acted = true;
      for (std::uint64_t i = 1; i <= 4; ++i)
        EXPECT_TRUE(append(*log_, end + i, "others") == Append::done || i == 1);
      EXPECT_TRUE(log_->trim(end + 4).ok());
    };
    const Append came = append(*slow, end + 1, "slow");
    if (!acted) {
      EXPECT_EQ(came, Append::done);
      interrupted->at = 0;
      continue;
    }
    // The last message is the others' in each case, and the slow one is before it or nowhere.
    EXPECT_EQ(log_->ends()->last, end + 4);
    const auto rest = log_->read(log_->ends()->first, 100);
    for (const Message& m : *rest) EXPECT_NE(text_of(m), "slow") << m.sequence;
    EXPECT_EQ(came, point == 1 ? Append::refused : Append::unknown);
  }
  // A reader at the end, while others append and trim.
  for (int point = 1; point <= 6; ++point) {
    SCOPED_TRACE(point);
    const std::uint64_t end = log_->ends()->last;
    const auto interrupted = std::make_shared<Interrupted>(store_);
    const auto slow = open_store_log(interrupted).value();
    interrupted->at = point;
    interrupted->act = [&] {
      EXPECT_EQ(append(*log_, end + 1, "next"), Append::done);
      EXPECT_TRUE(log_->trim(end + 1).ok());
    };
    const auto read = slow->read(end + 1, 100);
    EXPECT_TRUE(read.ok()) << read.status().message();
  }
}

// A writer that was stopped when its message was there. Others have read it, and trimmed the log up
// to it.
TEST_F(StoreLogs, AnAppendDoesNotTakeBackWhatATrimHasKept) {
  EXPECT_EQ(append(*log_, 1, "one"), Append::done);
  const auto interrupted = std::make_shared<Interrupted>(store_);
  const auto slow = open_store_log(interrupted).value();
  interrupted->at = 3;  // the second look at the message before
  interrupted->act = [&] { EXPECT_TRUE(log_->trim(2).ok()); };
  EXPECT_EQ(append(*slow, 2, "two"), Append::done);
  EXPECT_EQ(log_->ends()->first, 2U);
  EXPECT_EQ(log_->ends()->last, 2U);
  EXPECT_EQ(text_of(log_->read(2, 100)->front()), "two");
  EXPECT_EQ(append(*log_, 3, "three"), Append::done);
}

// A writer that was killed before it could take back what it has put where others have trimmed.
TEST_F(StoreLogs, WhatAnInterruptedAppendHasLeftIsNotRead) {
  EXPECT_EQ(append(*log_, 1, "one"), Append::done);
  const auto interrupted = std::make_shared<Interrupted>(store_);
  const auto slow = open_store_log(interrupted).value();
  interrupted->at = 2;  // before its message is put
  interrupted->act = [&] {
    for (std::uint64_t i = 2; i <= 5; ++i) EXPECT_EQ(append(*log_, i, "others"), Append::done);
    EXPECT_TRUE(log_->trim(4).ok());
    interrupted->at = 2;  // before it is removed
    interrupted->act = [] { throw std::runtime_error("killed"); };
  };
  EXPECT_THROW(append(*slow, 2, "slow"), std::runtime_error);
  EXPECT_EQ(log_->read(2, 100).code(), Code::expired);
  EXPECT_EQ(log_->read(4, 100)->size(), 2U);
  EXPECT_EQ(append(*log_, 6, "six"), Append::done);
}

// STORELOG-1: the newest that was read stands for all: names are synced by folder.
TEST_F(StoreLogs, WhatIsReadIsDurable) {
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(append(*log_, i, "x"), Append::done);
  const auto store = std::make_shared<Interrupted>(store_);
  const auto log = open_store_log(store).value();
  EXPECT_EQ(log->read(1, 100)->size(), 3U);
  ASSERT_EQ(store->kept.size(), 1U);
  EXPECT_TRUE(store->kept[0].starts_with("stream-") && store->kept[0].ends_with("3"));
  EXPECT_TRUE(log->read(4, 100)->empty());
  EXPECT_EQ(store->kept.size(), 1U) << "nothing was read";
}

// Without being told, the wait would last longer than the test may.
TEST_F(StoreLogs, AReaderIsToldOfANewMessage) {
  const auto reader = open_store_log(store_).value();
  EXPECT_FALSE(reader->wait(1, std::chrono::microseconds(100)));
  for (std::uint64_t i = 1; i <= 20; ++i) {
    std::thread writer([&, i] { EXPECT_EQ(append(*log_, i, "x"), Append::done); });
    EXPECT_TRUE(reader->wait(i, std::chrono::hours(1)));
    EXPECT_EQ(reader->read(i, 1)->size(), 1U);
    writer.join();
    EXPECT_TRUE(reader->wait(i, std::chrono::hours(1))) << "it is there already";
  }
}

}  // namespace
}  // namespace perdure::replication::test
