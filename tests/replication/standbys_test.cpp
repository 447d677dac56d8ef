// SPDX-License-Identifier: BSD-3-Clause
//
// The level standby(n): what standbys say that they have, which of them count, and what a wait for
// them answers where they, or the log, are not there.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

#include "perdure/backup/store.hpp"
#include "perdure/replication/claims.hpp"
#include "perdure/replication/standbys.hpp"
#include "perdure/replication/store_log.hpp"
#include "tests/replication/copies.hpp"

namespace perdure::replication::test {
namespace {

using namespace std::chrono_literals;
using perdure::test::BackedUp;

// standby() is also a member of Copies.
constexpr Ack one = perdure::standby(1), two = perdure::standby(2);

TEST(StandbyLevel, SaysHowManyStandbysItNeeds) {
  EXPECT_EQ(standbys_of(local), 0U);
  EXPECT_EQ(standbys_of(shipped), 0U);
  EXPECT_EQ(standbys_of(quorum), 0U);
  for (unsigned n = 1; n <= most_standbys; ++n) EXPECT_EQ(standbys_of(perdure::standby(n)), n);
  for (const unsigned n : {0U, most_standbys + 1, 252U, 253U, 256U, ~0U})
    EXPECT_GT(standbys_of(perdure::standby(n)), most_standbys) << n;
}

// ---- who counts ---------------------------------------------------------------------------------

TEST(Standbys, AreCountedOnceEach) {
  SimulatedLog log(1);
  Standbys seen("pool-", "pool-own");
  ASSERT_TRUE(seen.look(log).ok());
  EXPECT_TRUE(seen.ids().empty());
  log.said = {{"pool-own", 100}, {"pool-a", 5}, {"pool-b", 9}, {"other-c", 1000}};
  ASSERT_TRUE(seen.look(log).ok());
  EXPECT_EQ(seen.ids(), (std::vector<std::uint64_t>{9, 5}));
  EXPECT_EQ(seen.id_of(2), 5U);
  EXPECT_EQ(seen.id_of(3), 0U);
  log.said["pool-a"] = 12;
  ASSERT_TRUE(seen.look(log).ok());
  EXPECT_EQ(seen.ids(), (std::vector<std::uint64_t>{12, 9}));
  log.said = {{"pool-b", 1}};  // made anew
  ASSERT_TRUE(seen.look(log).ok());
  EXPECT_EQ(seen.ids(), (std::vector<std::uint64_t>{12, 9})) << "what was reached stays so";
  for (unsigned i = 0; i < 30; ++i) log.said["pool-" + std::to_string(i)] = 20 + i;
  ASSERT_TRUE(seen.look(log).ok());
  EXPECT_EQ(seen.id_of(most_standbys), 49 - most_standbys + 1);
}

TEST(Standbys, AreToldApartByPoolAndName) {
  constexpr std::uint8_t pool[16] = {1}, other[16] = {2};
  EXPECT_NE(copy_id(pool, "a:/pool"), copy_id(pool, "b:/pool"));
  EXPECT_NE(copy_id(pool, "a:/pool"), copy_id(other, "a:/pool"));
  EXPECT_EQ(copy_id(pool, "a:/pool"), copy_id(pool, "a:/pool"));
  EXPECT_TRUE(copy_id(pool, "a:/pool").starts_with(copies_of(pool)));
}

// ---- a log in files -----------------------------------------------------------------------------

using Said = std::vector<std::pair<std::string, std::uint64_t>>;
Said said(LogService& log) {
  Said all;
  const auto confirmed = log.confirmed();
  EXPECT_TRUE(confirmed.ok()) << confirmed.status().message();
  if (confirmed.ok())
    for (const Confirmed& c : *confirmed) all.emplace_back(c.copy, c.id);
  return all;
}

TEST(StoreLog, KeepsTheLastThatEachStandbyHasSaid) {
  const pool::testing::Scratch scratch;
  const auto open = [&] {
    return open_store_log(backup::open_folder(scratch.path("log"), true).value(), true).value();
  };
  const auto a = open(), b = open(), reads = open();
  EXPECT_EQ(said(*reads), Said{});
  EXPECT_TRUE(a->describe()->confirms);
  for (const std::uint64_t id : {3U, 9U, 10U, 10U}) ASSERT_TRUE(a->confirm({"aa", id}).ok());
  ASSERT_TRUE(b->confirm({"bb", 7}).ok());
  EXPECT_EQ(said(*reads), (Said{{"aa", 10}, {"bb", 7}}));
  // Another object of the same copy, which knows nothing of the first one.
  ASSERT_TRUE(open()->confirm({"aa", 12}).ok());
  EXPECT_EQ(said(*reads), (Said{{"aa", 12}, {"bb", 7}}));
  const auto files = backup::open_folder(scratch.path("log"), false).value()->list("standbys/");
  EXPECT_EQ(files->size(), 2U) << "what was said before is gone";
  // One that was interrupted has left two.
  ASSERT_TRUE(backup::open_folder(scratch.path("log"), false)
                  .value()
                  ->put("standbys/bb-" + std::string(18, '0') + "11", nullptr, 0)
                  .ok());
  EXPECT_EQ(said(*reads), (Said{{"aa", 12}, {"bb", 11}}));
  EXPECT_TRUE(a->append(1, "x", 1).outcome == Append::done) << "they are none of its messages";
  EXPECT_EQ(a->ends()->last, 1U);
}

// ---- pools --------------------------------------------------------------------------------------

void set(auto& tx, BackedUp& r) { tx.write(r.count, 7); }

StandbyOptions named(const Copies& copies, const std::string& name) {
  StandbyOptions o = copies.standby();
  o.replicate.name = name;
  return o;
}
std::unique_ptr<StandbyCopy> follow(const Copies& copies, const std::string& name) {
  return StandbyCopy::open(copies.scratch.path(name), named(copies, name)).value();
}

TEST(StandbyLevel, IsReachedWhenSoManyHaveIt) {
  Copies copies;
  auto pool = ReplicatedPool::open(copies.scratch.path(), copies.options());
  EXPECT_TRUE(pool.replication().standby_ids.empty());
  const auto first = follow(copies, "first");
  auto receipt = pool.update(one, [](auto& tx, BackedUp& r) { set(tx, r); });
  EXPECT_GE(first->status().id, receipt.id());
  EXPECT_EQ(receipt.level(), one);
  EXPECT_TRUE(receipt.reached());
  EXPECT_FALSE(std::move(receipt).at(two).reached());
  EXPECT_EQ(pool.replication().standby_ids.size(), 1U);
  const auto second = follow(copies, "second");
  const auto both = pool.update(two, [](auto& tx, BackedUp& r) { set(tx, r); });
  EXPECT_GE(first->status().id, both.id());
  EXPECT_GE(second->status().id, both.id());
  EXPECT_EQ(pool.replication().standby_ids.size(), 2U);
}

// A receipt that nobody waits for, and continuations of several levels: none waits for another one.
TEST(StandbyLevel, IsToldWithoutAWait) {
  Copies copies;
  auto pool = ReplicatedPool::open(copies.scratch.path(), copies.options());
  const auto update = [&] { return pool.update([](auto& tx, BackedUp& r) { set(tx, r); }); };
  std::promise<Status> by_two, by_one, in_log, here;
  const auto tell = [&](Ack level, std::promise<Status>& to) {
    update().at(level).then([](auto g) { g(); }, [&to](Status s) { to.set_value(std::move(s)); });
  };
  const auto comes = [](std::promise<Status>& of) {
    auto future = of.get_future();
    return future.wait_for(10s) == std::future_status::ready && future.get().ok();
  };
  const auto first = follow(copies, "first");
  tell(two, by_two);
  tell(one, by_one);
  tell(shipped, in_log);
  tell(local, here);
  EXPECT_TRUE(comes(here));
  EXPECT_TRUE(comes(in_log));
  EXPECT_TRUE(comes(by_one));
  const auto second = follow(copies, "second");
  EXPECT_TRUE(comes(by_two));
  const auto receipt = update().at(two);
  for (int i = 0; i < 1000 && !receipt.reached(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(receipt.reached());
}

Code of_wait(const ReceiptBase& receipt, Ack level, std::string& message) {
  const Status s = receipt.try_wait(level);
  message = s.message();
  return s.code();
}

TEST(StandbyLevel, IsInDoubtWhereTooFewHaveSaidSo) {
  Copies copies;
  Options o = copies.options();
  o.replicate.patience = 200ms;
  auto pool = ReplicatedPool::open(copies.scratch.path(), o);
  // What this copy said when it was a standby itself is no other copy's.
  const std::string own = copy_name(o.replicate, copies.scratch.path());
  copies.log->said[copy_id(copies.uuid, own)] = 1000;
  const auto receipt = pool.update([](auto& tx, BackedUp& r) { set(tx, r); });
  std::string message;
  EXPECT_EQ(of_wait(receipt, one, message), Code::in_doubt);
  EXPECT_NE(message.find("in the log"), std::string::npos) << message;
  EXPECT_NE(message.find("1 standbys"), std::string::npos) << message;
  // A copy that says so before the log has the transaction has another one of that number.
  copies.log->said[copy_id(copies.uuid, "another")] = 1000;
  EXPECT_EQ(of_wait(receipt, one, message), Code::ok);
  copies.shared->off = true;
  const auto next = pool.update([](auto& tx, BackedUp& r) { set(tx, r); });
  EXPECT_EQ(of_wait(next, one, message), Code::in_doubt);
  EXPECT_NE(message.find("not known to be in the log"), std::string::npos) << message;
  copies.shared->off = false;
  EXPECT_EQ(of_wait(next, one, message), Code::ok) << message;
}

TEST(StandbyLevel, IsRefusedWhereItCannotBeReached) {
  Copies copies;
  std::string message;
  {
    auto pool = ReplicatedPool::open(copies.scratch.path(), copies.options());
    const auto receipt = pool.update([](auto& tx, BackedUp& r) { set(tx, r); });
    for (const unsigned n : {0U, most_standbys + 1}) {
      EXPECT_EQ(of_wait(receipt, perdure::standby(n), message), Code::invalid);
      EXPECT_NE(message.find("1 to 16"), std::string::npos) << message;
    }
  }
  copies.log->confirms = false;
  const auto copy = copies.follow();
  auto pool = ReplicatedPool::open(copies.scratch.path(), copies.options());
  const auto receipt = pool.update(shipped, [](auto& tx, BackedUp& r) { set(tx, r); });
  EXPECT_EQ(of_wait(receipt, one, message), Code::unsupported);
  copy->catch_up(20s).or_throw();
  EXPECT_EQ(copy->status().problem, "");
  EXPECT_TRUE(copies.log->said.empty());
  // Of a log that has neither call.
  class Bare final : public LogService {
   public:
    AppendAnswer append(std::uint64_t, const void*, std::uint64_t) override { return {}; }
    Result<std::vector<Message>> read(std::uint64_t, std::uint64_t) override {
      return std::vector<Message>{};
    }
    Result<LogEnds> ends() override { return LogEnds{}; }
    Status trim(std::uint64_t) override { return {}; }
    Result<LogTraits> describe() override { return LogTraits{}; }
    [[nodiscard]] const std::string& name() const noexcept override { return name_; }

   private:
    const std::string name_ = "bare";
  } bare;
  EXPECT_EQ(bare.confirm({"a", 1}).code(), Code::unsupported);
  EXPECT_EQ(bare.confirmed().code(), Code::unsupported);
  EXPECT_FALSE(bare.describe()->confirms);
}

// STANDBY-3
TEST(StandbyLevel, IsNotReachedByWhatACopyCannotApply) {
  Copies copies;
  Stream other = copies.other();
  const auto copy = copies.follow();
  copy->catch_up(20s).or_throw();
  const std::uint64_t has = copy->status().id;
  const auto& said_by = copies.log->said;
  ASSERT_EQ(said_by.size(), 1U);
  Copies::append(other, {log::entry_key(log::EntryKind::words, std::uint64_t{1} << 40, 1), 7});
  EXPECT_EQ(copy->catch_up(20s).code(), Code::corrupt);
  EXPECT_EQ(said_by.begin()->second, has);
}

// The log's servers are lost, all of them, and the primary's machine: the standby has it.
TEST(StandbyLevel, OutlivesTheLogAndThePrimary) {
  Copies copies;
  {
    auto pool = ReplicatedPool::open(copies.scratch.path(), copies.options());
    auto copy = copies.follow();
    pool.update(one, [](auto& tx, BackedUp& r) { tx.write(r.count, 4711); });
    copies.shared->off = true;
    copy.reset();  // it is not closed
  }
  std::filesystem::remove(copies.scratch.path());
  Options o = copies.options();
  o.replicate = {};
  o.read_only = true;
  auto pool = ReplicatedPool::open(copies.scratch.path("copy"), o);
  pool.view([](auto& tx, const BackedUp& r) { EXPECT_EQ(tx.read(r.count), 4711U); });
  EXPECT_TRUE(pool.check().ok());
}

}  // namespace
}  // namespace perdure::replication::test
