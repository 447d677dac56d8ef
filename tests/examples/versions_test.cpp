// SPDX-License-Identifier: BSD-3-Clause
//
// Version 1 of each example program fills a pool. Version 2 prints its plan, is killed at random
// instants while it opens the pool, and is allowed to open it in the end. Then all of the data must
// be there, and version 1 must be refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "examples/jobs_v2.hpp"
#include "examples/order_book_v2.hpp"
#include "examples/sessions.hpp"
#include "examples/sessions_v2.hpp"
#include "tests/medium/scratch.hpp"

namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

perdure::Options small() {
  perdure::Options options;
  options.durability = perdure::async;
  options.migrate.batch = 20;
  options.creation.max_size = 1 << 28;
  return options;
}

template <class Root>
Lines plan(const std::string& path, const std::vector<perdure::MigrationStep>& steps = {}) {
  const auto found = perdure::migration_plan<Root>(path, {.steps = steps}).value();
  EXPECT_EQ(found.refusals, Lines());
  return found.changes;
}

/// Opens the pool in processes that are killed: six at the ends of batches, and others at any
/// instant, until one finishes.
void kill_openings(const std::function<void(const perdure::Options&)>& open) {
  std::mt19937 random(1);
  int killed = 0;
  for (bool ended = false; !ended;) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      perdure::Options options = small();
      if (killed < 6)
        options.migrate.progress = [at = random() % 4](auto&, std::uint64_t rows) mutable {
          if (rows != 0 && at-- == 0) ::raise(SIGKILL);
        };
      open(options);
      ::_exit(0);
    }
    (void)random();
    if (killed >= 6 && killed < 12) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ended = WIFEXITED(status);
    ASSERT_TRUE(!ended || WEXITSTATUS(status) == 0);
    killed += ended ? 0 : 1;
  }
  EXPECT_GE(killed, 6);
}

template <class Root>
void expect_refused(const std::string& path) {
  const auto status = perdure::Pool<Root>::try_open(path).status();
  EXPECT_EQ(status.code(), perdure::Code::incompatible);
  EXPECT_NE(status.message().find("a newer version of this program has taken over"),
            std::string::npos)
      << status.message();
}

TEST(Versions, Sessions) {
  const perdure::medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
  const sessions::Time now(1'700'000'000s);
  std::vector<sessions::Session> all;
  for (std::uint64_t i = 0; i < 300; ++i)
    all.push_back({"token " + std::to_string(i), i % 7, Lines(i % 3, "a role " + std::to_string(i)),
                   now + 1h + i * 1s});
  {
    sessions::Store store(path, small());
    for (const auto& session : all) store.put(session);
  }
  EXPECT_EQ(
      plan<sessions::v2::Root>(path),
      (Lines{"sessions.owner: renamed from user",
             "sessions.device: new; its initialiser's value is in old ones",
             "sessions.logins: new; its initialiser's value is in old ones",
             "sessions: index user is dropped",
             "sessions: index owner+device is new, its entries are made", "logins: new, u64"}));
  kill_openings([&](const perdure::Options& options) { sessions::v2::Store(path, options); });
  {
    sessions::v2::Store store(path, small());
    for (const auto& old : all) {
      const auto session = store.find(old.token, now);
      ASSERT_TRUE(session) << old.token;
      EXPECT_EQ(session->owner, old.user);
      EXPECT_EQ(session->roles, old.roles);
      EXPECT_EQ(session->until, old.until);
      EXPECT_EQ(session->device, "unknown");
      EXPECT_EQ(session->logins, 1U);
    }
    EXPECT_EQ(store.of_owner(3, {}).size(), 43U);
    EXPECT_EQ(store.of_owner(3, "unknown").size(), 43U);
    EXPECT_EQ(store.log_in({"token 3", 3, "phone", 1, {}, now + 9h}), 2U);
    EXPECT_EQ(store.of_owner(3, "phone"), Lines{"token 3"});
    EXPECT_EQ(store.of_owner(3, "unknown").size(), 42U);
    EXPECT_TRUE(store.pool().check().ok());
  }
  EXPECT_EQ(plan<sessions::v2::Root>(path), Lines());
  expect_refused<sessions::Root>(path);
}

TEST(Versions, Jobs) {
  const perdure::medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
  const jobs::Time now(1'700'000'000'000ms);
  jobs::Counts before;
  {
    jobs::Queue queue(path, {.lease = 1h, .retry_after = 1min, .max_tries = 1}, small());
    for (int i = 0; i < 300; ++i)
      queue.add(i % 3 == 0 ? "call" : (i % 3 == 1 ? "mail " : "bill ") + std::to_string(i), now);
    for (int i = 0; i < 60; ++i) {
      const auto job = *queue.take(now).job;
      if (i < 20)
        queue.finish(job);
      else if (i < 50)
        queue.fail(job, "no answer", now);
    }
    before = queue.counts();
    EXPECT_EQ(before.dead, 30U);
  }
  EXPECT_EQ(plan<jobs::v2::Root>(path, jobs::v2::steps()).size(), 14U);
  kill_openings([&](const perdure::Options& options) { jobs::v2::Queue(path, options); });
  {
    jobs::v2::Queue queue(path, small());
    EXPECT_EQ(queue.counts().added, 300U);
    EXPECT_EQ(queue.counts().done, 20U);
    EXPECT_EQ(queue.counts().dead, 30U);
    EXPECT_EQ(queue.counts().waiting, before.waiting);
    queue.pool().view([&](auto& tx, const jobs::v2::Root& root) {
      for (auto job : root.dead.template ordered<&jobs::v2::Job::id>(tx)) {
        EXPECT_EQ(job->errors, Lines{"no answer"});
        EXPECT_EQ(job->what, job->kind == "call" ? "" : std::to_string(job->id - 1));
      }
    });
    EXPECT_FALSE(queue.take("fax", now, 1min));
    EXPECT_FALSE(queue.take("mail", now - 1ms, 1min));
    std::uint64_t finished = 0;
    for (const char* kind : {"call", "mail", "bill"})
      while (const auto job = queue.take(kind, now + 2h, 1min)) {
        EXPECT_EQ(job->kind, kind);
        EXPECT_EQ(job->what, job->kind == "call" ? "" : std::to_string(job->id - 1));
        finished += queue.finish(*job) ? 1 : 0;
      }
    EXPECT_EQ(finished, before.waiting);
    EXPECT_EQ(queue.add("mail", "301", now), 301U);
    EXPECT_TRUE(queue.pool().check().ok());
  }
  expect_refused<jobs::Root>(path);
}

TEST(Versions, OrderBook) {
  const perdure::medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
  book::Totals before;
  std::vector<book::Order> old;
  {
    book::Book book(path, small());
    std::mt19937 random(1);
    for (int i = 0; i < 400; ++i)
      book.place(i % 2 == 0 ? book::Side::buy : book::Side::sell, "trader " + std::to_string(i % 5),
                 1000 + (i % 2 == 0 ? -1 : 1) * (static_cast<int>(random() % 50) - 5),
                 1 + static_cast<std::uint32_t>(random() % 100));
    before = book.totals();
    EXPECT_GT(before.traded, 0U);
    for (int i = 0; i < 5; ++i)
      for (auto& order : book.orders_of("trader " + std::to_string(i)))
        old.push_back(std::move(order));
  }
  EXPECT_EQ(plan<book::v2::Root>(path, book::v2::steps()).size(), 12U);
  kill_openings([&](const perdure::Options& options) { book::v2::Book(path, options); });
  {
    book::v2::Book book(path, small());
    EXPECT_EQ(book.totals(), before);
    std::size_t found = 0;
    for (int i = 0; i < 5; ++i) found += book.orders_of("trader " + std::to_string(i)).size();
    EXPECT_EQ(found, old.size());
    book.pool().view([&](auto& tx, const book::v2::Root& root) {
      for (const book::Order& order : old) {
        auto now = root.bids.find(tx, order.id);
        if (!now) now = root.asks.find(tx, order.id);
        ASSERT_TRUE(now);
        EXPECT_EQ(now->price, order.price);
        EXPECT_EQ(now->quantity, order.quantity);
        EXPECT_EQ(now->owner, order.owner);
        EXPECT_EQ(now->placed, order.quantity);
        EXPECT_FALSE(now->until);
      }
    });
    const book::v2::Time now(1'800'000'000s);
    book.place(book::Side::sell, {0, 5000, 9, "eve", 0, now});
    EXPECT_EQ(book.expire(now - 1s), 0U);
    EXPECT_EQ(book.expire(now), 1U);
    EXPECT_TRUE(book.totals().sound());
    EXPECT_TRUE(book.pool().check().ok());
  }
  expect_refused<book::Root>(path);
}

}  // namespace
