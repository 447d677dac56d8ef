// SPDX-License-Identifier: BSD-3-Clause
//
// Archives, backups and logs in a bucket of a real S3-compatible server.
#include "s3/bucket.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "perdure/backup/places.hpp"
#include "perdure/replication/self_test.hpp"
#include "perdure/replication/store_log.hpp"
#include "perdure/replication/stream.hpp"
#include "tests/backup/history.hpp"
#include "tests/backup/store_contract.hpp"
#include "tests/s3/server.hpp"

namespace perdure::s3 {
namespace {

using backup::Store;

class Buckets : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<test::Server>();
    const BucketOptions all = server_->at("");
    ::setenv("AWS_ENDPOINT_URL_S3", all.endpoint.c_str(), 1);
    ::setenv("AWS_ACCESS_KEY_ID", all.access_key.c_str(), 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", all.secret_key.c_str(), 1);
  }
  static void TearDownTestSuite() { server_.reset(); }

  [[nodiscard]] BucketOptions options() const { return server_->at(folder_); }
  [[nodiscard]] std::shared_ptr<Store> open() const { return open_bucket(options()).value(); }
  [[nodiscard]] std::string place() const { return options().place; }

  static inline std::unique_ptr<test::Server> server_;
  // Each case has a folder of its own.
  const std::string folder_ = testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(Buckets, ObjectsAreWrittenOnce) { backup::test::expect_written_once(*open()); }

TEST_F(Buckets, TwoFoldersAreApart) {
  const auto one = open(), other = open_bucket(server_->at(folder_ + "2")).value(),
             within = open_bucket(server_->at(folder_ + "/in")).value();
  EXPECT_TRUE(one->put("name", "1", 1).value());
  EXPECT_TRUE(other->put("name", "2", 1).value());
  EXPECT_TRUE(within->put("name", "3", 1).value());
  EXPECT_EQ("1", backup::test::text_of(*one, "name"));
  EXPECT_EQ((std::vector<std::string>{"in/name", "name"}), one->list("").value());
  EXPECT_EQ((std::vector<std::string>{"name"}), other->list("").value());
}

TEST_F(Buckets, OfManyThatMakeAnObjectOneDoes) {
  constexpr int threads = 8, names = 20;
  std::atomic<int> made[names] = {};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const auto store = open();
      for (int i = 0; i < names; ++i) {
        const std::string mine = std::to_string(t);
        if (store->put("name-" + std::to_string(i), mine.data(), mine.size()).value()) ++made[i];
      }
    });
  for (std::thread& t : all) t.join();
  for (const auto& n : made) EXPECT_EQ(1, n);
}

// More than a list has in one answer (1,000).
TEST_F(Buckets, ManyObjectsAreMadeAtOnceAndListed) {
  const auto store = open();
  std::vector<std::string> names;
  {
    const auto batch = store->batch();
    for (int i = 0; i < 1100; ++i) {
      names.push_back("chunk/" + std::to_string(10000 + i));
      ASSERT_TRUE(batch->put(names.back(), names.back().data(), names.back().size()).ok());
    }
    ASSERT_TRUE(batch->flush().ok());
  }
  EXPECT_EQ(names, store->list("chunk/").value());
  EXPECT_EQ(names[1099], backup::test::text_of(*store, names[1099]));
  const auto again = store->batch();
  ASSERT_TRUE(again->put(names[0], "other", 5).ok());
  ASSERT_TRUE(again->flush().ok());
  EXPECT_EQ(names[0], backup::test::text_of(*store, names[0])) << "it was there";
}

TEST_F(Buckets, LocksExcludeEachOther) { backup::test::expect_locks(*open(), *open()); }

// S3LOCK-1: at most one of two that want it has it.
TEST_F(Buckets, ALockIsHeldOnce) {
  std::atomic<int> holders{0}, held{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&] {
      const auto store = open();
      for (int i = 0; i < 10; ++i) {
        const auto lock = store->lock(Store::Use::log);
        if (lock.code() == Code::busy) continue;
        EXPECT_TRUE(lock.ok()) << lock.status().message();
        EXPECT_EQ(0, holders.fetch_add(1));
        ++held;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        holders.fetch_sub(1);
      }
    });
  for (std::thread& t : all) t.join();
  const auto store = open();
  EXPECT_TRUE(store->lock(Store::Use::log).ok()) << "all are released";
  EXPECT_GT(held, 0);
}

TEST_F(Buckets, TheLockOfAKilledProcessIsFoundOut) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = open()->lock(Store::Use::log);
    if (lock.ok()) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(open()->lock(Store::Use::log).ok());
}

TEST_F(Buckets, TheLockOfAnotherMachineStays) {
  const auto store = open();
  const std::string elsewhere = "elsewhere 0123 4567 pid:[1] 4711 89\n";
  ASSERT_TRUE(store->put(".lock-log-of-another", elsewhere.data(), elsewhere.size()).value());
  const auto lock = store->lock(Store::Use::log);
  EXPECT_EQ(Code::busy, lock.code());
  EXPECT_NE(std::string::npos, lock.status().message().find("process 4711 on elsewhere"));
  EXPECT_NE(std::string::npos,
            lock.status().message().find("remove the object " + folder_ + "/.lock-log-of-another"));
  ASSERT_TRUE(store->remove(".lock-log-of-another").ok());
  EXPECT_TRUE(store->lock(Store::Use::log).ok());
}

TEST_F(Buckets, WhatIsWrongIsSaid) {
  EXPECT_EQ(Code::not_found, open_bucket(server_->at("", "another")).code());
  BucketOptions o = options();
  o.secret_key = "wrong";
  const auto denied = open_bucket(o);
  EXPECT_EQ(Code::io, denied.code());
  EXPECT_NE(std::string::npos, denied.status().message().find("SignatureDoesNotMatch"));
  for (const char* const wrong :
       {"s3://", "s3:///folder", "s3://backups/a b", "folder", "s3://backups//twice"}) {
    o = options();
    o.place = wrong;
    EXPECT_EQ(Code::invalid, open_bucket(o).code()) << wrong;
  }
  o = options();
  o.endpoint = "127.0.0.1:1";
  EXPECT_EQ(Code::invalid, open_bucket(o).code());
  EXPECT_EQ(Code::not_found, open()->get("nothing").code());
}

// All states of a pool are restored from a bucket, which is named as a folder is.
TEST_F(Buckets, APoolIsArchivedAndRestored) {
  enable();
  const pool::testing::Scratch scratch;
  Options o;
  o.medium = "emulated";
  o.archive.folder = place();
  o.archive.file_age = std::chrono::milliseconds(20);
  perdure::test::Program program(1);
  {
    auto pool = Pool<perdure::test::BackedUp>::open(scratch.path(), o);
    program.knows(pool);
    for (int i = 0; i < 60; ++i) program.step(pool);
    pool.backup();
    for (int i = 0; i < 30; ++i) program.step(pool);
    EXPECT_EQ(Code::busy, [&] {
      try {
        o.create = true;
        const auto twice = Pool<perdure::test::BackedUp>::open(scratch.path("other"), o);
      } catch (const error& e) {
        return e.code();
      }
      return Code::ok;
    }());
    pool.close();
  }
  std::uint64_t n = 0;
  for (const auto& [id, state] : program.states())
    if (n++ % 10 == 0) {
      EXPECT_EQ(state, perdure::test::restored(place(), scratch.path("to"), {.id = id})) << id;
    }
  EXPECT_EQ(program.states().rbegin()->second,
            perdure::test::restored(place(), scratch.path("to"), {}));
  const VerifyReport found = verify_backups(place());
  EXPECT_TRUE(found.ok());
  EXPECT_EQ(2U, found.backups.size());
}

// The command takes such a place wherever it takes a folder of backups.
TEST_F(Buckets, TheCommandOpensPlaces) {
  const pool::testing::Scratch scratch;
  perdure::test::Program program(2);
  Options o;
  o.medium = "emulated";
  {
    auto pool = Pool<perdure::test::BackedUp>::open(scratch.path(), o);
    for (int i = 0; i < 20; ++i) program.step(pool);
    pool.close();
  }
  const auto run = [&](const std::string& words) {
    const std::string command = perdure::test::program_of("PERDURE_COMMAND") + " " + words;
    return std::system((command + " >" + scratch.path("said") + " 2>&1").c_str());
  };
  EXPECT_EQ(0, run("backup " + scratch.path() + " " + place()));
  EXPECT_EQ(0, run("verify --restore " + place()));
  EXPECT_EQ(0, run("restore " + place() + " " + scratch.path("new")));
  EXPECT_EQ(0, run("check " + scratch.path("new")));
  EXPECT_EQ(0, run("prune " + place() + " --from latest"));
  EXPECT_NE(0, run("backup " + scratch.path() + " ftp://elsewhere"));
  o.create = false;
  auto pool = Pool<perdure::test::BackedUp>::open(scratch.path("new"), o);
  EXPECT_EQ(program.states().rbegin()->second,
            pool.view([](auto& tx, const auto& r) { return perdure::test::contents(tx, r); }));
}

TEST_F(Buckets, ALogLiesThere) {
  const auto one = replication::open_store_log(open()).value(),
             other = replication::open_store_log(open()).value();
  EXPECT_TRUE(replication::self_test(*one, *other).ok());
}

// STREAM-3: of two copies that claim a log, one has it, and the other one's frames never count.
TEST_F(Buckets, APrimaryIsDeposed) {
  const std::uint8_t uuid[16] = {1};
  replication::Stream first(replication::open_store_log(open()).value(), uuid, {}),
      second(replication::open_store_log(open()).value(), uuid, {});
  const auto nothing = [](const backup::Frame&, const replication::StreamPlace&) {
    return Status();
  };
  using State = replication::Stream::State;
  ASSERT_EQ(replication::Stream::Claim::primary, first.claim("first", nothing).value());
  backup::FrameHeader frame{};
  frame.kind = backup::FrameKind::group;
  frame.last = 1;
  EXPECT_EQ(State::in_log, first.append(frame, "12345678", 8).value());
  ASSERT_EQ(replication::Stream::Claim::primary, second.claim("second", nothing).value());
  EXPECT_EQ(1U, second.place().end.last) << "it has read what the first one wrote";
  frame.last = 2;
  EXPECT_EQ(State::deposed, first.append(frame, "12345678", 8).value());
  EXPECT_EQ(State::in_log, second.append(frame, "87654321", 8).value());
}

TEST(Places, AKindThatNobodyRegisteredIsNamed) {
  const auto none = backup::open_place("ftp://there", false);
  EXPECT_EQ(Code::unsupported, none.code());
  EXPECT_NE(std::string::npos, none.status().message().find("ftp://there"));
}

}  // namespace
}  // namespace perdure::s3
