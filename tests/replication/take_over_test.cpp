// SPDX-License-Identifier: BSD-3-Clause
//
// Standbys that take over by themselves: from whom, when, and what comes of it where an answer is
// missing or another one was faster.
#include <gtest/gtest.h>

#include <chrono>

#include "perdure/replication/silence.hpp"
#include "perdure/replication/store_log.hpp"
#include "tests/replication/copies.hpp"
#include "tests/replication/other_process.hpp"

namespace perdure::replication::test {
namespace {

using namespace std::chrono_literals;
using perdure::test::BackedUp;
using perdure::test::contents;

// ---- when ---------------------------------------------------------------------------------------

constexpr Silence::Time start{};

TEST(Silence, IsOverWhenTheSignsStop) {
  Silence s(1000ms, 0, start);
  s.heard(true, 100, start);
  EXPECT_FALSE(s.over(start + 1000ms));
  EXPECT_TRUE(s.over(start + 1001ms));
  s.heard(false, 100, start + 900ms);
  EXPECT_TRUE(s.over(start + 1001ms)) << "the log has answered, and had nothing new";
  s.heard(true, 100, start + 900ms);
  EXPECT_FALSE(s.over(start + 1900ms));
  EXPECT_TRUE(s.over(start + 1901ms));
}

TEST(Silence, CountsOnlyWhereSignsArePromised) {
  Silence s(1000ms, 0, start);
  EXPECT_FALSE(s.over(start + 1h));
  s.heard(true, 0, start);
  EXPECT_FALSE(s.over(start + 1h));
  Silence never(0ms, 0.5, start);
  never.heard(true, 1, start);
  EXPECT_FALSE(never.over(start + 1h));
}

TEST(Silence, ThreeSignsMustBeMissing) {
  Silence s(1000ms, 0, start);
  s.heard(true, 500, start);
  EXPECT_FALSE(s.over(start + 1500ms));
  EXPECT_TRUE(s.over(start + 1501ms));
}

TEST(Silence, OfTheLogIsNotThePrimarys) {
  Silence s(1000ms, 0, start);
  s.heard(true, 100, start);
  s.no_answer(start + 5s);
  s.heard(false, 100, start + 5s + 1ms);
  EXPECT_FALSE(s.over(start + 6s));
  EXPECT_TRUE(s.over(start + 6s + 1ms));
}

TEST(Silence, StandbysWaitDifferently) {
  Silence s(1000ms, 1, start);
  s.heard(true, 100, start);
  EXPECT_FALSE(s.over(start + 1250ms));
  EXPECT_TRUE(s.over(start + 1251ms));
}

// ---- what comes of it ---------------------------------------------------------------------------

StandbyOptions that_take_over(const Copies& two, std::chrono::milliseconds after) {
  StandbyOptions o = two.standby();
  o.take_over_after = after;
  return o;
}

TEST(TakeOver, FromASilentPrimary) {
  Copies two;
  Stream other = two.other(10ms);
  Copies::append(other, {});
  auto copy = two.follow(that_take_over(two, 30ms));
  EXPECT_TRUE(copy->took_over(20s).value());
  StandbyStatus s = copy->status();
  EXPECT_TRUE(s.took_over);
  EXPECT_FALSE(s.follows);
  EXPECT_EQ(s.term, 3U);
  EXPECT_EQ(s.primary, "this copy");
  EXPECT_EQ(s.id, other.place().end.last) << "it has what the log had";
  EXPECT_TRUE(copy->catch_up(0ms).ok());
  // What promote() does.
  copy->claim().or_throw();
  EXPECT_EQ(copy->status().term, 3U) << "no second claim";
  auto pool = ReplicatedPool::open(two.scratch.path("copy"), two.options());
  pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
  backup::FrameHeader late{};
  late.kind = backup::FrameKind::group;
  late.last = other.place().end.last;
  EXPECT_EQ(other.append(late, nullptr, 0).value(), Stream::State::deposed);
}

TEST(TakeOver, NotFromOneThatGivesNoSigns) {
  Copies two;
  Stream other = two.other();
  Copies::append(other, {});
  auto copy = two.follow(that_take_over(two, 10ms));
  copy->catch_up(20s).or_throw();
  EXPECT_FALSE(copy->took_over(200ms).value());
  EXPECT_TRUE(copy->status().follows);
}

// It was as far before, and reads no frame anew.
TEST(TakeOver, FromOneThatWasSilentBeforeItOpened) {
  Copies two;
  Stream other = two.other(10ms);
  Copies::append(other, {});
  {
    auto copy = two.follow();
    copy->catch_up(20s).or_throw();
    copy->close().or_throw();
  }
  auto copy = two.follow(that_take_over(two, 30ms));
  EXPECT_TRUE(copy->took_over(20s).value());
  EXPECT_EQ(copy->status().messages, 0U);
}

TEST(TakeOver, FollowsTheOneThatWasFaster) {
  Copies two;
  Stream other = two.other(10ms);
  Copies::append(other, {});
  const auto service = std::make_shared<SharedLog>(two.shared.get());
  std::optional<Stream> faster;
  service->before = [&](std::uint64_t) {
    if (!faster) faster.emplace(two.other(60s));
  };
  StandbyOptions o = that_take_over(two, 30ms);
  o.replicate.service = service;
  auto copy = two.follow(o);
  wait_until([&] { return copy->status().term == 3; });
  Copies::append(*faster, {});
  copy->catch_up(20s).or_throw();
  EXPECT_TRUE(copy->status().follows);
  EXPECT_EQ(copy->status().primary, "the other one");
  EXPECT_EQ(copy->status().id, faster->place().end.last);
}

// The rule by itself: the log has a later term when the claim begins.
TEST(TakeOver, OnlyInPlaceOfTheTermThatWasSilent) {
  Copies two;
  Stream other = two.other();
  Stream mine(two.shared, two.uuid, {});
  Claims claims("mine", {});
  ClaimTerm how{"mine",
                "mine:copy",
                std::chrono::steady_clock::now() + 20s,
                [&](const backup::Frame& frame, const StreamPlace& after) {
                  if (frame.header.kind != backup::FrameKind::term) return Status();
                  return claims.on_term(frame, after, frame.header.last);
                },
                [](const pool::ReplicationWords&) { return Status(); },
                1};
  const Status s = claim_term(mine, claims, *two.shared, how);
  EXPECT_EQ(s.code(), Code::deposed) << s.message();
  EXPECT_NE(s.message().find("the other one"), std::string::npos) << s.message();
  Copies::append(other, {});
  how.instead_of = 2;
  EXPECT_TRUE(claim_term(mine, claims, *two.shared, how).ok());
}

// The answer of the claim is lost, and the log is then away for longer than a claim waits.
TEST(TakeOver, FindsItsClaimThatHadNoAnswer) {
  Copies two;
  Stream other = two.other(10ms);
  Copies::append(other, {});
  const auto service = std::make_shared<SharedLog>(two.shared.get());
  service->unanswered = true;
  service->after = [&](std::uint64_t) { service->off = true; };
  StandbyOptions o = that_take_over(two, 30ms);
  o.replicate.service = service;
  o.replicate.patience = 100ms;
  auto copy = two.follow(o);
  wait_until([&] { return !copy->status().problem.empty(); });
  EXPECT_TRUE(copy->status().follows);
  const std::uint64_t messages = two.shared->ends().value().last;
  service->after = {};
  service->off = false;
  EXPECT_TRUE(copy->took_over(20s).value());
  EXPECT_EQ(two.shared->ends().value().last, messages) << "one claim";
  copy->claim().or_throw();
  auto pool = ReplicatedPool::open(two.scratch.path("copy"), two.options());
  EXPECT_EQ(pool.replication().term, 4U);
}

// ---- the primary's signs ------------------------------------------------------------------------

TEST(TakeOver, AnIdlePrimaryGivesSigns) {
  Copies two;
  Options o = two.options();
  o.replicate.beat_every = 5ms;
  auto pool = ReplicatedPool::open(two.scratch.path(), o);
  const std::uint64_t id = pool.stats().last_id, from = two.shared->ends().value().last;
  wait_until([&] { return two.shared->ends().value().last >= from + 5; });
  EXPECT_EQ(pool.stats().last_id, id);
  Stream reader(two.shared, two.uuid, {});
  reader.read([](const backup::Frame&, const StreamPlace&) { return Status(); }).or_throw();
  EXPECT_EQ(reader.beat_ms(), 5U);
  EXPECT_EQ(reader.place().end.last, id);
  pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
  // Its next sign is refused, and so it learns that it is deposed.
  Stream other = two.other();
  wait_until([&] { return !pool.replication().primary; });
}

TEST(TakeOver, WhatMakesNoSenseIsRefused) {
  Copies two;
  Options o = two.options();
  for (const std::chrono::milliseconds beat : {-1ms, 60'001ms}) {
    o.replicate.beat_every = beat;
    EXPECT_EQ(ReplicatedPool::try_open(two.scratch.path(), o).code(), Code::invalid);
  }
  EXPECT_EQ(StandbyCopy::open(two.scratch.path("copy"), that_take_over(two, -1ms)).code(),
            Code::invalid);
}

// A primary in another process is killed while it runs, and what it had acknowledged as shipped is
// there.
TEST(TakeOver, FromAKilledPrimary) {
  const pool::testing::Scratch scratch;
  for (const char* folder : {"backups", "stream"})
    std::filesystem::create_directory(scratch.path(folder));
  Board* const board = Board::make();  // the child process has it, too: it stays
  const std::shared_ptr<LogService> log =
      open_store_log(backup::open_folder(scratch.path("stream"), true).value()).value();
  Options o;
  o.medium = "file";
  o.creation.log_size = 1 << 20;
  o.creation.max_size = 256 << 20;
  o.replicate.service = log;
  o.replicate.beat_every = 20ms;
  Child primary(
      [&] { run_primary<ReplicatedPool>(*board, scratch.path(), o, scratch.path("backups"), 3); });
  wait_until([&] { return board->ready.load(); });
  StandbyOptions follows;
  follows.medium = "file";
  follows.replicate.service = log;
  follows.backups = scratch.path("backups");
  follows.take_over_after = 500ms;
  auto copy = Standby<BackedUp>::open(scratch.path("copy"), follows);
  wait_until([&] { return board->shipped > 0 || copy.status().took_over; });
  primary.kill();
  wait_until([&] { return copy.took_over(100ms); });
  const std::uint64_t id = copy.status().id;
  EXPECT_GE(id, board->shipped.load());
  Options again;
  again.creation.max_size = 256 << 20;
  auto pool = std::move(copy).promote(again);
  const std::uint64_t found =
      digest(pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); }));
  const std::uint64_t told = board->digests[id];  // 0: it was killed before it said so
  EXPECT_EQ(found, told != 0 ? told : found);
  EXPECT_TRUE(pool.check().ok());
  pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
}

}  // namespace
}  // namespace perdure::replication::test
