// SPDX-License-Identifier: BSD-3-Clause
//
// Standbys: a copy of a replicated pool has each of the primary's states, in order, whenever it or
// the primary is killed; its data region is the primary's, byte for byte; it can become the
// primary; what it must not apply it names.
#include "perdure/api/standby.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "perdure/log/record.hpp"
#include "perdure/replication/store_log.hpp"
#include "tests/backup/failing_store.hpp"
#include "tests/replication/copies.hpp"
#include "tests/replication/other_process.hpp"

namespace perdure::replication::test {
namespace {

using namespace std::chrono_literals;
using perdure::test::BackedUp;
using perdure::test::Contents;
using perdure::test::contents;
using perdure::test::Program;
using pool::testing::Scratch;

// The contents of a pool that no process has open, and that is sound.
Contents closed_contents(const std::string& path, const char* medium) {
  Options o;
  o.medium = medium;
  o.read_only = true;
  auto pool = ReplicatedPool::open(path, o);
  const CheckReport report = pool.check();
  EXPECT_TRUE(report.ok()) << report.problems.front();
  EXPECT_TRUE(pool.header().clean == 1);
  return pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
}

// What kind of pool: memory is in the strict order, a file in the pipelined one.
struct Kind {
  const char* medium;
  bool checksums;
};

class StandbyOf : public ::testing::TestWithParam<Kind> {
 protected:
  StandbyOf() {
    std::filesystem::create_directory(scratch.path("stream"));
    log = open_store_log(backup::open_folder(scratch.path("stream"), true).value()).value();
  }
  [[nodiscard]] Options primary() const {
    Options o;
    o.medium = GetParam().medium;
    o.checksums = GetParam().checksums;
    o.creation.log_size = 1 << 20;
    o.creation.max_size = 256 << 20;
    o.replicate = standby().replicate;
    o.replicate.name = "the primary";
    return o;
  }
  [[nodiscard]] StandbyOptions standby() const {
    StandbyOptions o;
    o.medium = GetParam().medium;
    o.replicate.service = log;
    o.replicate.name = "the standby";
    o.replicate.patience = 60s;
    o.replicate.close_patience = 60s;
    o.backups = scratch.path("backups");
    return o;
  }
  // The child that has the pool; it has made a backup when this returns.
  [[nodiscard]] std::unique_ptr<Child> start_primary(std::uint64_t seed) {
    board->stop = board->ready = false;
    auto child = std::make_unique<Child>([&, seed] {
      run_primary<ReplicatedPool>(*board, scratch.path(), primary(), scratch.path("backups"), seed);
    });
    wait_until([&] { return board->ready.load(); });
    return child;
  }
  [[nodiscard]] static Contents contents_of(const std::string& path) {
    return closed_contents(path, GetParam().medium);
  }
  // The data regions of two pools are the same, but for what processes tell each other. So it is
  // where the copy was made of a backup that came before all frees: a backup has no free space, and
  // what was free is part of a new block until the program stores there.
  static void expect_same_data(const std::string& one, const std::string& another) {
    const auto read = [](const std::string& path) {
      std::ifstream file(path, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const std::string a = read(one), b = read(another);
    pool::Header h, g;
    std::memcpy(&h, a.data(), sizeof h);
    std::memcpy(&g, b.data(), sizeof g);
    ASSERT_EQ(h.log_bytes, g.log_bytes);
    const pool::Directory directory(h);
    const std::uint64_t words = pool::reader_words_offset;
    for (std::uint64_t at = 0; at < std::max(h.data_bytes, g.data_bytes); at += 8) {
      if ((at >= words && at < words + 64) || directory.holds_checksums(at / pool::chunk_bytes))
        continue;
      const auto word = [at](const std::string& bytes, const pool::Header& of) {
        std::uint64_t w = 0;
        if (at < of.data_bytes) std::memcpy(&w, bytes.data() + of.log_bytes + at, sizeof w);
        return w;
      };
      ASSERT_EQ(word(a, h), word(b, g)) << "at offset " << at;
    }
  }

  const Scratch scratch;
  Board* const board = Board::make();  // child processes have it, too: it stays
  std::shared_ptr<LogService> log;
};
INSTANTIATE_TEST_SUITE_P(Kinds, StandbyOf,
                         ::testing::Values(Kind{"emulated", false}, Kind{"file", false},
                                           Kind{"file", true}),
                         [](const auto& kind) {
                           return std::string(kind.param.medium) +
                                  (kind.param.checksums ? "_checksums" : "");
                         });

TEST_P(StandbyOf, ShowsEachStateInOrderAndHasTheSameBytes) {
  const auto child = start_primary(1);
  const std::string path = scratch.path("copy");
  {
    auto copy = Standby<BackedUp>::open(path, standby());
    std::uint64_t seen = 0, compared = 0;
    const auto end = std::chrono::steady_clock::now() + 4s;
    while (std::chrono::steady_clock::now() < end || compared < 20) {
      const std::uint64_t id = copy.pool().refresh();
      ASSERT_GE(id, seen);
      seen = id;
      // A view may last: the state stays, whatever is applied meanwhile.
      const auto s = copy.pool().snapshot();
      const auto look = [&] {
        return s.view([](auto& tx, const BackedUp& r) { return digest(contents(tx, r)); });
      };
      const std::uint64_t found = look();
      if (compared % 10 == 9) std::this_thread::sleep_for(50ms);
      ASSERT_EQ(found, look());
      if (s.id() < Board::ids && board->digests[s.id()] != 0) {
        ASSERT_EQ(found, board->digests[s.id()]) << "the state of transaction " << s.id();
        ++compared;
      }
      ASSERT_TRUE(copy.status().follows) << copy.status().end.message();
    }
    // The id of a receipt is seen here.
    EXPECT_TRUE(copy.pool().wait_for(board->last, 20s));
    board->stop = true;
    EXPECT_EQ(child->wait(), 0);
    copy.catch_up(20s);
    EXPECT_LT(copy.status().behind, 20s);
    EXPECT_GT(copy.status().checkpoint_id, 0U) << "the log was full";
    const auto check = copy.pool().check();
    EXPECT_TRUE(check.ok()) << check.problems.front();
    copy.close();
  }
  EXPECT_EQ(contents_of(path), contents_of(scratch.path()));
  expect_same_data(path, scratch.path());
}

TEST_P(StandbyOf, IsKilledAtAnyMoment) {
  const auto child = start_primary(2);
  const std::string path = scratch.path("copy");
  std::mt19937_64 random(3);
  for (int round = 0; round < pool::testing::rounds_in(25); ++round) {
    Child follower([&] {
      auto copy = replication::StandbyCopy::open(path, standby()).value();
      for (;;) std::this_thread::sleep_for(1s);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    follower.kill();
  }
  board->stop = true;
  EXPECT_EQ(child->wait(), 0);
  auto copy = replication::StandbyCopy::open(path, standby()).value();
  copy->catch_up(30s).or_throw();
  EXPECT_EQ(copy->status().id, board->last);
  copy->close().or_throw();
  EXPECT_EQ(contents_of(path), contents_of(scratch.path()));
  expect_same_data(path, scratch.path());
}

// Each takes over from the other; the one that was killed comes back as the standby.
TEST_P(StandbyOf, TakesOver) {
  std::string old = scratch.path(), path = scratch.path("copy");
  std::uint64_t acknowledged = 0;
  auto child = start_primary(4);
  for (int round = 0; round < 4; ++round) {
    auto copy = replication::StandbyCopy::open(path, standby()).value();
    wait_until([&] { return board->shipped.load() > acknowledged; });
    if (round % 2 == 0) {
      child->kill();
    } else {
      board->stop = true;
      EXPECT_EQ(child->wait(), 0);
    }
    acknowledged = board->shipped;
    ASSERT_TRUE(copy->claim().ok());
    copy.reset();
    // A copy that lost its term after a kill may have what the log never got.
    {
      auto again = replication::StandbyCopy::open(old, standby()).value();
      const Status s = again->catch_up(30s);
      EXPECT_TRUE(s.ok() || s.code() == Code::diverged) << s.message();
      if (s.ok()) again->close().or_throw();
      if (!s.ok()) {
        EXPECT_EQ(round % 2, 0);
        again.reset();
        std::filesystem::rename(old, old + ".diverged-" + std::to_string(round));
      }
    }
    board->ready = board->stop = false;
    child = std::make_unique<Child>([&] {
      {
        auto pool = ReplicatedPool::open(path, primary());
        EXPECT_GE(pool.durable_id(), acknowledged);
        const std::uint64_t id = pool.durable_id();
        if (id < Board::ids && board->digests[id] != 0) {
          EXPECT_EQ(board->digests[id],
                    digest(pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); })));
        }
      }
      run_primary<ReplicatedPool>(*board, path, primary(), scratch.path("backups"), 5);
    });
    wait_until([&] { return board->ready.load(); });
    std::swap(old, path);
  }
  board->stop = true;
  EXPECT_EQ(child->wait(), 0);
  auto copy = replication::StandbyCopy::open(path, standby()).value();
  copy->catch_up(30s).or_throw();
  copy->close().or_throw();
  EXPECT_EQ(contents_of(path), contents_of(old));
}

TEST_P(StandbyOf, IsPromotedInItsProcess) {
  auto child = start_primary(6);
  auto copy = Standby<BackedUp>::open(scratch.path("copy"), standby());
  wait_until([&] { return board->shipped.load() != 0; });
  child->kill();
  const std::uint64_t acknowledged = board->shipped;
  auto pool = std::move(copy).promote();
  EXPECT_GE(pool.durable_id(), acknowledged);
  EXPECT_TRUE(pool.replication().primary);
  pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 1); });
}

// What a standby has archived can be restored, and is the primary's.
TEST_P(StandbyOf, ArchivesWhatItApplies) {
  const auto child = start_primary(7);
  StandbyOptions o = standby();
  o.archive.folder = scratch.path("archive");
  o.archive.file_bytes = 64 << 10;
  std::uint64_t base = 0;
  {
    auto copy = Standby<BackedUp>::open(scratch.path("copy"), o);
    copy.catch_up(30s);
    base = copy.pool().backup(scratch.path("archive")).id;
    wait_until([&] { return board->last.load() > base + 60; });
    board->stop = true;
    EXPECT_EQ(child->wait(), 0);
    copy.catch_up(30s);
    copy.close();
  }
  unsigned compared = 0;
  for (std::uint64_t id = base; id <= board->last && id < Board::ids; id += 7) {
    if (board->digests[id] == 0) continue;
    RestorePoint to;
    to.id = id;
    EXPECT_EQ(digest(perdure::test::restored(scratch.path("archive"), scratch.path("again"), to)),
              board->digests[id])
        << id;
    ++compared;
  }
  EXPECT_GT(compared, 3U);
}

// ---- what must not be applied -------------------------------------------------------------------

TEST(Standby, NamesWhatItCannotHave) {
  const std::vector<std::vector<std::uint64_t>> strange{
      {log::entry_key(log::EntryKind::words, std::uint64_t{1} << 40, 1), 7},
      {log::entry_key(log::EntryKind::alloc, 4096, 1), 0},
      {log::entry_key(log::EntryKind::before, 1 << 20, 1), 7}};
  for (const auto& entries : strange) {
    Copies two;
    Stream other = two.other();
    {
      auto copy = two.follow();
      copy->catch_up(20s).or_throw();
      Copies::append(other, entries);
      EXPECT_EQ(copy->catch_up(20s).code(), Code::corrupt);
      EXPECT_FALSE(copy->status().follows);
    }
    // Nothing of it is in the pool.
    Options o = two.options();
    o.read_only = true;
    o.replicate = {};
    auto pool = ReplicatedPool::open(two.scratch.path("copy"), o);
    EXPECT_TRUE(pool.check().ok());
  }
}

TEST(Standby, ThatHasDivergedSaysSo) {
  Copies two;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), two.options());
    two.shared->off = true;
    pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
    Stream other = two.other();
    Copies::append(other, {});
    two.shared->off = false;
    wait_until([&] { return !pool.replication().primary; });
  }
  auto copy = replication::StandbyCopy::open(two.scratch.path(), two.standby()).value();
  const Status s = copy->catch_up(20s);
  EXPECT_EQ(s.code(), Code::diverged) << s.message();
  EXPECT_NE(s.message().find("the other one"), std::string::npos) << s.message();
  EXPECT_EQ(copy->claim().code(), Code::diverged);
}

// STREAM-5: killed when it has applied transactions behind a TERM frame, a copy does not take them
// for its own.
TEST(Standby, KnowsAfterAKillWhoseTransactionsItHas) {
  Copies two;
  {
    auto copy = two.follow();
    Stream other = two.other();
    for (int i = 0; i < 5; ++i) Copies::append(other, {});
    copy->catch_up(20s).or_throw();
  }  // as after a kill
  Stream third = two.other();
  auto copy = two.follow();
  EXPECT_TRUE(copy->catch_up(20s).ok());
  EXPECT_EQ(copy->status().term, 3U);
  EXPECT_EQ(copy->status().primary, "the other one");
}

// PRIMARY-3: a copy that is killed between its claim and the header finds that it is the primary.
TEST(Standby, KnowsItsClaimAfterAKill) {
  const Scratch folder;
  Copies two;
  two.follow()->catch_up(20s).or_throw();
  const std::shared_ptr<LogService> log =
      open_store_log(backup::open_folder(folder.path(), true).value()).value();
  for (std::uint64_t i = 0; i < two.log->messages.size(); ++i)
    ASSERT_EQ(log->append(i + 1, two.log->messages[i].data(), two.log->messages[i].size()).outcome,
              Append::done);
  StandbyOptions o = two.standby();
  o.replicate.service = log;
  Child child([&] {
    const auto shared = std::make_shared<SharedLog>(log);
    o.replicate.service = shared;
    auto copy = replication::StandbyCopy::open(two.scratch.path("copy"), o).value();
    copy->catch_up(20s).or_throw();
    shared->after = [](std::uint64_t) { ::_exit(7); };
    (void)copy->claim();
  });
  EXPECT_EQ(child.wait(), 7);
  Options again = two.options();
  again.replicate.service = log;
  auto pool = ReplicatedPool::open(two.scratch.path("copy"), again);
  EXPECT_EQ(pool.replication().term, 3U);
  pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
}

TEST(Standby, WithoutAnswersItIsBehindAndGoesOn) {
  Copies two;
  auto copy = two.follow();
  copy->catch_up(20s).or_throw();
  two.shared->off = true;
  EXPECT_EQ(copy->catch_up(100ms).code(), Code::unavailable);
  EXPECT_GE(copy->status().behind, 100ms);
  EXPECT_FALSE(copy->status().problem.empty());
  EXPECT_TRUE(copy->status().follows);
  two.shared->off = false;
  EXPECT_TRUE(copy->catch_up(20s).ok());
  EXPECT_EQ(copy->status().problem, "");
}

TEST(Standby, EndsWhileItWaitsForItsArchive) {
  Copies two;
  const auto store = std::make_shared<perdure::test::FailingStore>(two.scratch.path("archive"));
  StandbyOptions o = two.standby();
  o.archive.store = store;
  auto copy = two.follow(o);
  copy->catch_up(20s).or_throw();
  store->fails = true;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), two.options());
    for (int i = 0; i < 40; ++i)  // the copy's log has 1 MiB
      pool.update(shipped, [&](auto& tx, BackedUp& r) {
        r.sorted.put(tx, 1000, std::string(100'000, static_cast<char>('a' + i % 26)));
      });
  }
  const std::uint64_t end = two.shared->ends().value().last;
  EXPECT_EQ(copy->catch_up(2s).code(), Code::unavailable);
  EXPECT_LT(copy->status().sequence, end);
  const std::uint64_t id = copy->status().id;
  EXPECT_FALSE(copy->close().ok());
  copy.reset();
  store->fails = false;
  copy = two.follow(o);
  copy->catch_up(20s).or_throw();
  EXPECT_GT(copy->status().id, id);
  EXPECT_TRUE(copy->close().ok());
}

TEST(Standby, OfALogThatWasTrimmedSaysSo) {
  Copies two;
  two.follow()->close().or_throw();
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), two.options());
    for (int i = 0; i < 20; ++i)
      pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
  }
  ASSERT_TRUE(two.log->trim(two.log->messages.size()).ok());
  auto copy = two.follow();
  EXPECT_EQ(copy->catch_up(20s).code(), Code::expired);
}

TEST(Standby, OpensOnlyWhatIsReplicated) {
  Copies two;
  StandbyOptions o = two.standby();
  EXPECT_EQ(Standby<BackedUp>::try_open(two.scratch.path("copy"), {}).code(), Code::invalid);
  o.backups = {};
  EXPECT_EQ(Standby<BackedUp>::try_open(two.scratch.path("copy"), o).code(), Code::not_found);
  {
    auto pool = ReplicatedPool::open(two.scratch.path("alone"), [] {
      Options plain;
      plain.medium = "emulated";
      return plain;
    }());
  }
  EXPECT_EQ(Standby<BackedUp>::try_open(two.scratch.path("alone"), o).code(), Code::invalid);
  auto copy = replication::StandbyCopy::open(two.scratch.path(), o).value();
  EXPECT_EQ(Standby<BackedUp>::try_open(two.scratch.path(), o).code(), Code::busy);
  copy->close().or_throw();
  EXPECT_EQ(copy->close().code(), Code::invalid);
}

// A pool that counted its blocks, as a primary, and then had another copy's applied.
TEST(Standby, ThatWasThePrimaryIsSoundAfterwards) {
  Copies two;
  two.follow()->claim().or_throw();
  {
    auto pool = ReplicatedPool::open(two.scratch.path("copy"), two.options());
    for (int i = 0; i < 50; ++i) two.program.step(pool);
  }
  auto old = replication::StandbyCopy::open(two.scratch.path(), two.standby()).value();
  old->catch_up(20s).or_throw();
  old->close().or_throw();
  EXPECT_EQ(closed_contents(two.scratch.path(), "emulated"), two.program.states().rbegin()->second);
}

// The checksums of the primary's pages lie where its data region ended when it got them. A copy has
// none there: the primary puts other things where the copy would have put its own.
TEST(Standby, OfAPoolThatGotChecksumsLaterHasNone) {
  Copies two;
  {
    Options o = two.options();
    o.checksums = true;
    auto pool = ReplicatedPool::open(two.scratch.path(), o);
    two.program.step(pool);
    (void)pool.backup(two.scratch.path("backups"));
  }
  auto copy = two.follow();
  copy->catch_up(20s).or_throw();
  {
    Options o = two.options();
    o.checksums = true;
    auto pool = ReplicatedPool::open(two.scratch.path(), o);
    // It grows.
    for (int i = 0; i < 12; ++i)
      pool.update([&](auto& tx, BackedUp& r) {
        auto* const made = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(1 << 20));
        tx.write(made[0], std::uint64_t{1} << 17);
        tx.write(r.block[static_cast<std::size_t>(i)], made);
      });
    two.program.knows(pool);
  }
  copy->catch_up(20s).or_throw();
  copy->close().or_throw();
  EXPECT_EQ(closed_contents(two.scratch.path("copy"), "emulated"),
            two.program.states().rbegin()->second);
}

// ---- changes of the pool ------------------------------------------------------------------------

struct FirstVersion {
  p<std::uint64_t> count;
};
struct SecondVersion {
  p<std::uint64_t> count, more;
};

// A reader of the standby learns of the new version; with it, it reads on.
TEST(Standby, FollowsAChangeOfTheProgramsVersion) {
  const Scratch scratch;
  const std::string stream = scratch.path("stream");
  const auto log = open_store_log(backup::open_folder(stream, true).value()).value();
  Options o;
  o.medium = "emulated";
  o.replicate.service = log;
  StandbyOptions s;
  s.medium = "emulated";
  s.replicate = o.replicate;
  s.backups = scratch.path("backups");
  Child([&] {
    auto pool = Pool<FirstVersion>::open(scratch.path(), o);
    (void)pool.backup(scratch.path("backups"));
    pool.update(shipped, [](auto& tx, FirstVersion& r) { tx.write(r.count, 5); });
    pool.close();
  }).wait();
  Board* const board = Board::make();
  // Made before this process has threads.
  Child second([&] {
    wait_until([&] { return board->ready.load(); });
    auto pool = Pool<SecondVersion>::open(scratch.path(), o);
    pool.update(shipped, [](auto& tx, SecondVersion& r) { tx.write(r.more, 6); });
    pool.close();
  });
  auto copy = Standby<FirstVersion>::open(scratch.path("copy"), s);
  copy.catch_up(20s);
  copy.pool().refresh();
  copy.pool().view([](auto& tx, const FirstVersion& r) { EXPECT_EQ(tx.read(r.count), 5U); });
  board->ready = true;
  EXPECT_EQ(second.wait(), 0);
  copy.catch_up(20s);
  EXPECT_THROW(
      {
        copy.pool().refresh();
        copy.pool().view([](auto& tx, const FirstVersion& r) { (void)tx.read(r.count); });
      },
      error);
  copy.close();
  auto newer = Standby<SecondVersion>::open(scratch.path("copy"), s);
  newer.catch_up(20s);
  newer.pool().view([](auto& tx, const SecondVersion& r) {
    EXPECT_EQ(tx.read(r.count), 5U);
    EXPECT_EQ(tx.read(r.more), 6U);
  });
}

TEST(Standby, OfAPoolWhoseLimitWasRaisedHasToBeMadeAnew) {
  Copies two;
  two.follow()->close().or_throw();
  {
    Options o = two.options();
    o.creation.max_size = 512 << 20;
    o.creation.raise_max_size = true;
    auto pool = ReplicatedPool::open(two.scratch.path(), o);
    two.program.step(pool);
    (void)pool.backup(two.scratch.path("backups"));
  }
  auto copy = two.follow();
  const Status s = copy->catch_up(20s);
  EXPECT_EQ(s.code(), Code::incompatible) << s.message();
  copy.reset();
  std::filesystem::remove(two.scratch.path("copy"));
  EXPECT_TRUE(two.follow()->catch_up(20s).ok());
}

}  // namespace
}  // namespace perdure::replication::test
