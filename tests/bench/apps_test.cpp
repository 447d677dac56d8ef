// SPDX-License-Identifier: BSD-3-Clause
//
// The three example programs on Perdure, LMDB and SQLite (bench/apps): the same random operations
// give on each store what a model of the standard library gives, also after it was opened again.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bench/apps/jobs_lmdb.hpp"
#include "bench/apps/jobs_sqlite.hpp"
#include "bench/apps/order_book_lmdb.hpp"
#include "bench/apps/order_book_sqlite.hpp"
#include "bench/apps/sessions_lmdb.hpp"
#include "bench/apps/sessions_sqlite.hpp"
#include "bench/apps/stores.hpp"
#include "bench/harness/scratch.hpp"

namespace {

using namespace std::chrono_literals;

struct OnPerdure {
  using Sessions = sessions::Store;
  using Jobs = jobs::Queue;
  using Book = book::Book;
  static perdure::Options how() { return {.medium = "emulated"}; }
};
struct OnLmdb {
  using Sessions = sessions::LmdbStore;
  using Jobs = jobs::LmdbQueue;
  using Book = book::LmdbBook;
  static bool how() { return false; }
};
struct OnSqlite {
  using Sessions = sessions::SqliteStore;
  using Jobs = jobs::SqliteQueue;
  using Book = book::SqliteBook;
  static std::string how() { return "OFF"; }
};

// A store in a file of its own.
template <class On, class Store>
class Opened {
 public:
  Store& operator*() { return *store_; }
  Store* operator->() { return store_.get(); }
  void reopen() {
    store_.reset();
    store_ = open();
  }

 private:
  std::unique_ptr<Store> open() {
    return bench::apps::open_store<Store>(scratch_.path() + "/store", On::how());
  }
  bench::Scratch scratch_{std::filesystem::temp_directory_path().string()};
  std::unique_ptr<Store> store_ = open();
};

template <class On>
class Programs : public ::testing::Test {
 protected:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  static constexpr int steps = 3000, between_openings = 500;
  std::mt19937_64 random_{7};
};
using Stores = ::testing::Types<OnPerdure, OnLmdb, OnSqlite>;
TYPED_TEST_SUITE(Programs, Stores);

TYPED_TEST(Programs, SessionsAreThoseOfTheModel) {
  using sessions::Session, sessions::Time;
  struct Row {
    std::uint64_t number;
    Session session;
  };
  Opened<TypeParam, typename TypeParam::Sessions> store;
  std::map<std::string, Row> model;
  std::uint64_t next = 0;
  for (int i = 0; i < this->steps; ++i) {
    if (i % this->between_openings == 0) store.reopen();
    const Time now(std::chrono::seconds(i / 4 - 200));  // also before 1970
    const std::string token = "token " + std::to_string(this->below(100));
    const auto at = model.find(token);
    const bool there = at != model.end();
    switch (this->below(6)) {
      case 0: {
        Session s{token, this->below(8), {}, now + std::chrono::seconds(this->below(60))};
        for (auto n = this->below(3); n > 0; --n) s.roles.push_back("role " + std::to_string(n));
        ASSERT_EQ(!there, store->put(s)) << token;
        const std::uint64_t number = there ? at->second.number : next++;
        model[token] = {number, s};
        break;
      }
      case 1: {
        const auto found = store->find(token, now);
        ASSERT_EQ(there && now < at->second.session.until, found.has_value()) << token;
        if (!found) break;
        const Session& right = at->second.session;
        EXPECT_EQ(token, found->token);
        EXPECT_EQ(right.user, found->user);
        EXPECT_EQ(right.roles, found->roles);
        EXPECT_EQ(right.until, found->until);
        break;
      }
      case 2: {
        const Time until = now + std::chrono::seconds(this->below(60));
        ASSERT_EQ(there, store->renew(token, until)) << token;
        if (there) at->second.session.until = until;
        break;
      }
      case 3:
        ASSERT_EQ(there, store->end(token)) << token;
        if (there) model.erase(at);
        break;
      case 4: {
        const auto most = this->below(4);
        std::set<std::tuple<Time, std::uint64_t, std::string>> over;
        for (const auto& [t, row] : model)
          if (row.session.until <= now) over.emplace(row.session.until, row.number, t);
        while (over.size() > most) over.erase(std::prev(over.end()));
        ASSERT_EQ(over.size(), store->expire(now, most));
        for (const auto& [until, number, t] : over) model.erase(t);
        break;
      }
      default: {
        const std::uint64_t user = this->below(8);
        std::map<std::uint64_t, std::string, std::greater<>> newest_first;
        for (const auto& [t, row] : model)
          if (row.session.user == user) newest_first[row.number] = t;
        std::vector<std::string> expected;
        for (const auto& [number, t] : newest_first) expected.push_back(t);
        ASSERT_EQ(expected, store->of_user(user));
      }
    }
    ASSERT_EQ(model.size(), store->size());
  }
}

void expect_equal(const jobs::Job& expected, const jobs::Job& found) {
  EXPECT_EQ(expected.id, found.id);
  EXPECT_EQ(expected.task, found.task);
  EXPECT_EQ(expected.due, found.due);
  EXPECT_EQ(expected.tries, found.tries);
  EXPECT_EQ(expected.errors, found.errors);
}

TYPED_TEST(Programs, JobsAreThoseOfTheModel) {
  using jobs::Job, jobs::Time;
  Opened<TypeParam, typename TypeParam::Jobs> queue;
  const jobs::Policy policy;
  std::map<std::uint64_t, Job> waiting, dead;
  std::uint64_t added = 0, done = 0;
  std::vector<Job> taken;  // some of them long ago
  const auto bury = [&](Job job, const std::string& error) {
    job.errors.push_back(error);
    waiting.erase(job.id);
    dead[job.id] = job;
  };
  for (int i = 0; i < this->steps; ++i) {
    if (i % this->between_openings == 0) queue.reopen();
    const Time now(1000ms * i);
    const auto any = [&] { return taken[this->below(taken.size())]; };
    switch (taken.empty() ? this->below(3) : this->below(6)) {
      case 0: {
        Job job{++added, "task " + std::to_string(i), now + 100ms * this->below(200), 0, {}};
        ASSERT_EQ(job.id, queue->add(job.task, job.due));
        waiting[job.id] = job;
        break;
      }
      case 3: {
        const Job job = any();
        const auto at = waiting.find(job.id);
        const bool held = at != waiting.end() && at->second.tries == job.tries;
        ASSERT_EQ(held, queue->finish(job));
        if (held) waiting.erase(at), ++done;
        break;
      }
      case 4: {
        const Job job = any();
        const auto at = waiting.find(job.id);
        const bool held = at != waiting.end() && at->second.tries == job.tries;
        ASSERT_EQ(held, queue->fail(job, "it did not work", now));
        if (!held) break;
        // What was taken may have been tried, and have failed, in the same lease.
        if (job.tries >= policy.max_tries) {
          bury(job, "it did not work");
        } else {
          at->second.due = now + policy.retry_after;
          at->second.errors.emplace_back("it did not work");
        }
        break;
      }
      default: {
        const auto found = queue->take(now);
        std::optional<Job> expected;
        Time next = Time::max();
        while (!waiting.empty()) {
          auto first = waiting.begin();
          for (auto at = first; at != waiting.end(); ++at)
            if (at->second.due < first->second.due) first = at;
          if (now < first->second.due) {
            next = first->second.due;
            break;
          }
          if (first->second.tries < policy.max_tries) {
            first->second.due = now + policy.lease;
            ++first->second.tries;
            expected = first->second;
            break;
          }
          bury(first->second, "its last lease ended");
        }
        ASSERT_EQ(expected.has_value(), found.job.has_value());
        if (expected) {
          expect_equal(*expected, *found.job);
          taken.push_back(*found.job);
          if (taken.size() > 20) taken.erase(taken.begin());
        } else {
          ASSERT_EQ(next, found.next);
        }
      }
    }
    const auto counts = queue->counts();
    ASSERT_EQ(added, counts.added);
    ASSERT_EQ(done, counts.done);
    ASSERT_EQ(waiting.size(), counts.waiting);
    ASSERT_EQ(dead.size(), counts.dead);
  }
  queue.reopen();
  const auto buried = queue->dead();
  ASSERT_EQ(dead.size(), buried.size());
  ASSERT_FALSE(buried.empty());
  for (std::size_t n = 0; const auto& [id, job] : dead) expect_equal(job, buried[n++]);
}

TYPED_TEST(Programs, OrdersAreThoseOfTheModel) {
  using book::Fill, book::Order, book::Price, book::Side;
  Opened<TypeParam, typename TypeParam::Book> store;
  std::map<std::uint64_t, Order> sides[2];  // bids, asks
  book::Totals sums;
  std::uint64_t last = 0;
  for (int i = 0; i < this->steps; ++i) {
    if (i % this->between_openings == 0) store.reopen();
    const std::string owner = std::string(1 + this->below(3), 'a');  // one begins another
    switch (this->below(4)) {
      case 0: {
        const std::uint64_t id = this->below(last + 1);
        std::uint32_t there = 0;
        for (auto& side : sides)
          if (const auto at = side.find(id); at != side.end()) {
            there = at->second.quantity;
            side.erase(at);
          }
        sums.cancelled += there;
        ASSERT_EQ(there != 0, store->cancel(id)) << id;
        break;
      }
      case 1: {
        std::vector<Order> expected;
        for (const auto& side : sides)
          for (const auto& [id, order] : side)
            if (order.owner == owner) expected.push_back(order);
        const auto found = store->orders_of(owner);
        ASSERT_EQ(expected.size(), found.size());
        for (std::size_t n = 0; n < found.size(); ++n) {
          EXPECT_EQ(expected[n].id, found[n].id);
          EXPECT_EQ(expected[n].price, found[n].price);
          EXPECT_EQ(expected[n].quantity, found[n].quantity);
          EXPECT_EQ(owner, found[n].owner);
        }
        break;
      }
      default: {
        const Side side = this->below(2) == 0 ? Side::buy : Side::sell;
        const Price price = static_cast<Price>(this->below(21)) - 10;  // also below zero
        const auto quantity = 1 + static_cast<std::uint32_t>(this->below(50));
        std::uint32_t left = quantity;
        std::vector<Fill> fills;
        const Price sign = side == Side::buy ? 1 : -1;
        auto& others = sides[side == Side::buy ? 1 : 0];
        while (left != 0 && !others.empty()) {
          auto best = others.begin();
          for (auto at = best; at != others.end(); ++at)
            if (at->second.price * sign < best->second.price * sign) best = at;
          if (best->second.price * sign > price * sign) break;
          const std::uint32_t filled = std::min(left, best->second.quantity);
          fills.push_back({best->first, best->second.price, filled});
          left -= filled;
          sums.traded += filled;
          if ((best->second.quantity -= filled) == 0) others.erase(best);
        }
        sums.entered += quantity;
        ++last;
        if (left != 0) sides[side == Side::buy ? 0 : 1][last] = {last, price, left, owner};
        const auto placed = store->place(side, owner, price, quantity);
        ASSERT_EQ(last, placed.id);
        ASSERT_EQ(left, placed.resting);
        ASSERT_EQ(fills, placed.fills);
      }
    }
    sums.resting = 0;
    sums.bid.reset();
    sums.ask.reset();
    for (const auto& [id, order] : sides[0]) {
      sums.resting += order.quantity;
      if (!sums.bid || *sums.bid < order.price) sums.bid = order.price;
    }
    for (const auto& [id, order] : sides[1]) {
      sums.resting += order.quantity;
      if (!sums.ask || *sums.ask > order.price) sums.ask = order.price;
    }
    ASSERT_EQ(sums, store->totals());
  }
}

}  // namespace
