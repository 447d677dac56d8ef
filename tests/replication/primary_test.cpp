// SPDX-License-Identifier: BSD-3-Clause
//
// The primary of a replicated pool: each of the pool's states can be made from a backup and the
// log, whatever the log's service does with single appends, and whenever the process is killed; an
// opening becomes the primary of a new term or is refused; what the levels promise.
#include "perdure/replication/primary.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <coroutine>
#include <thread>

#include "perdure/backup/segment.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/replication/copy.hpp"
#include "perdure/replication/store_log.hpp"
#include "perdure/replication/stream.hpp"
#include "tests/backup/history.hpp"
#include "tests/replication/other_process.hpp"
#include "tests/replication/shared_log.hpp"
#include "tests/replication/simulated_log.hpp"

namespace perdure::replication::test {
namespace {

using namespace std::chrono_literals;
using perdure::test::AnyPool;
using perdure::test::BackedUp;
using perdure::test::Contents;
using perdure::test::contents;
using perdure::test::Program;
using pool::testing::Scratch;
using ReplicatedPool = AnyPool<BackedUp>;

Options options(std::shared_ptr<LogService> log) {
  Options o;
  o.medium = "emulated";
  o.creation.log_size = 1 << 20;
  o.creation.max_size = 256 << 20;
  o.replicate.service = std::move(log);
  o.replicate.name = "a test";
  o.replicate.patience = 20s;
  o.replicate.close_patience = 20s;
  return o;
}

std::shared_ptr<LogService> folder_log(const Scratch& scratch) {
  return open_store_log(backup::open_folder(scratch.path("stream"), true).value()).value();
}

template <class F>
Code code_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return Code::ok;
}

// What counts in the log, as a segment beside the backups in the folder.
std::uint64_t to_segment(LogService& log, const std::uint8_t (&uuid)[16],
                         const std::string& folder) {
  std::vector<std::byte> frames;
  backup::HistoryEnd end;
  const std::shared_ptr<LogService> shared(&log, [](LogService*) {});
  Stream stream(shared, uuid, {});
  const auto add = [&](const backup::Frame& frame, const StreamPlace&) {
    backup::FrameHeader h = frame.header;
    h.term = h.sequence = 0;
    h.parts = 0;
    if (h.kind != backup::FrameKind::term)
      backup::append_frame(frames, h, frame.payload, h.payload_bytes, end);
    return Status();
  };
  const Status read = stream.read(add);
  EXPECT_TRUE(read.ok()) << read.message();
  auto store = backup::open_folder(folder, true).value();
  const std::vector<std::string> before = store->list(backup::segment_prefix).value();
  for (const std::string& old : before) EXPECT_TRUE(store->remove(old).ok());
  const backup::SegmentName name{1, 0, end.last};
  const auto bytes = backup::make_segment(name, 0, uuid, {}, frames);
  EXPECT_TRUE(store->put(name.text(), bytes.data(), bytes.size()).ok());
  return end.last;
}

void uuid_of(ReplicatedPool& pool, std::uint8_t (&uuid)[16]) {
  std::memcpy(uuid, pool.header().uuid, sizeof uuid);
}

// What a tool does that knows nothing of the log: recovers the pool, and closes it in order.
std::unique_ptr<pool::OpenPool> closed_without_its_log(const std::string& path) {
  pool::OpenFile how;
  how.path = path;
  how.medium = "emulated";
  how.with_log = true;
  pool::Identity who;
  who.engine_any = who.layout_any = true;
  auto file = pool::OpenPool::open(how, who).value();
  engine::Recovery report;
  engine::recover(*engine::find_family("shadow"), *file, report, {}).or_throw();
  file->start_session(pool::ViewPolicy::none).or_throw();
  file->close_clean(report.last_id).or_throw();
  return file;
}

// A new pool over the log, with a backup.
void make_pool(const Scratch& scratch, const std::shared_ptr<LogService>& log,
               std::uint8_t (&uuid)[16]) {
  auto pool = ReplicatedPool::open(scratch.path(), options(log));
  uuid_of(pool, uuid);
  (void)pool.backup(scratch.path("folder"));
}

class EachState : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Faults, EachState, ::testing::Values(0, 10));

TEST_P(EachState, CanBeMadeFromTheLog) {
  const Scratch scratch;
  const auto of_100 = static_cast<unsigned>(GetParam());
  const auto log =
      std::make_shared<SimulatedLog>(7, Faults{of_100, of_100, of_100, of_100, of_100});
  log->largest = 8 << 10;
  const auto shared = std::make_shared<SharedLog>(log);
  Program program(3);
  std::uint8_t uuid[16];
  std::uint64_t base = 0;
  for (int session = 0; session < 4; ++session) {
    auto pool = ReplicatedPool::open(scratch.path(), options(shared));
    if (session == 0) {
      uuid_of(pool, uuid);
      base = pool.backup(scratch.path("folder")).id;
      program.knows(pool);
    }
    // A claim without an answer may have begun a term, too.
    EXPECT_GE(pool.replication().term, static_cast<std::uint64_t>(session + 1));
    for (int i = 0; i < 60; ++i) program.step(pool);
    // Of more than a message, so that it is appended in pieces.
    pool.update([&](auto& tx, BackedUp& r) {
      r.sorted.put(tx, 1000, std::string(40'000 + static_cast<std::size_t>(session), 'x'));
    });
    program.knows(pool);
    if (session % 2 == 0) {
      EXPECT_TRUE(pool.close().clean);
    }
  }
  // Read without the faults.
  const auto plain = std::make_shared<SimulatedLog>(1);
  plain->messages = log->messages;
  const std::uint64_t last = to_segment(*plain, uuid, scratch.path("folder"));
  EXPECT_EQ(last, program.states().rbegin()->first);
  for (std::uint64_t id = base; id <= last; id += 1 + id % 7) {
    RestorePoint to;
    to.id = id;
    EXPECT_EQ(perdure::test::restored(scratch.path("folder"), scratch.path("again"), to),
              program.at(id))
        << id;
  }
}

// The child commits as fast as it can, and the log is a little behind.
TEST(Primary, AKillLosesNothingThatWasAcknowledged) {
  const Scratch scratch;
  const auto log = folder_log(scratch);
  std::uint8_t uuid[16];
  make_pool(scratch, log, uuid);
  std::uint64_t appended_late = 0;
  for (int round = 0; round < 6; ++round) {
    int pipe[2];
    ASSERT_EQ(0, ::pipe(pipe));
    const pid_t child = ::fork();
    if (child == 0) {
      auto pool = ReplicatedPool::open(scratch.path(), options(log));
      for (std::uint64_t i = 0;; ++i) {
        auto receipt = pool.update([&](auto& tx, BackedUp& r) {
          r.sorted.put(tx, i % 500, "round " + std::to_string(i));
          tx.write(r.count, tx.read(r.count) + 1);
        });
        if (i % 50 == 49 && !receipt.try_wait(shipped).ok()) ::_exit(1);
        const std::uint64_t told[2] = {receipt.id(), i % 50 == 49 ? receipt.id() : 0};
        if (::write(pipe[1], told, sizeof told) < 0) ::_exit(1);
      }
    }
    ::close(pipe[1]);
    std::uint64_t told[2], committed = 0, acknowledged = 0;
    for (int i = 0; i < 120 + 37 * round && ::read(pipe[0], told, sizeof told) == sizeof told;
         ++i) {
      committed = told[0];
      acknowledged = std::max(acknowledged, told[1]);
    }
    ::kill(child, SIGKILL);
    while (::read(pipe[0], told, sizeof told) == sizeof told) {
      committed = told[0];
      acknowledged = std::max(acknowledged, told[1]);
    }
    ::close(pipe[0]);
    ::waitpid(child, nullptr, 0);
    const std::uint64_t there = to_segment(*log, uuid, scratch.path("folder"));
    EXPECT_GE(there, acknowledged) << "acknowledged as shipped, and not in the log";
    Contents now;
    {
      auto pool = ReplicatedPool::open(scratch.path(), options(log));
      EXPECT_GE(pool.durable_id(), committed);
      EXPECT_GE(pool.replication().shipped_id, committed) << "the opening appends the rest";
      appended_late += pool.replication().shipped_id - there;
      now = pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
    }
    (void)to_segment(*log, uuid, scratch.path("folder"));
    EXPECT_EQ(perdure::test::restored(scratch.path("folder"), scratch.path("again"), {}), now);
  }
  EXPECT_GT(appended_late, 0U) << "no kill came before an append";
}

// PRIMARY-2: a checkpoint leaves in the pool's log what the replicated one lacks, also what is
// under way to it.
TEST(Primary, ACheckpointKeepsWhatTheLogLacks) {
  const Scratch scratch;
  const auto log = folder_log(scratch);
  std::uint8_t uuid[16];
  make_pool(scratch, log, uuid);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto shared = std::make_shared<SharedLog>(log);
    auto pool = ReplicatedPool::open(scratch.path(), options(shared));
    shared->off = true;
    for (std::uint64_t i = 0; i < 10; ++i) {
      pool.update([&](auto& tx, BackedUp& r) { r.sorted.put(tx, i, "a row"); });
      if (i != 5) continue;
      while (pool.replication().unanswered == 0) std::this_thread::sleep_for(1ms);
      pool.checkpoint();
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(0, status);
  Contents now;
  {
    auto pool = ReplicatedPool::open(scratch.path(), options(log));
    now = pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
  }
  EXPECT_EQ(now.sorted.size(), 10U);
  (void)to_segment(*log, uuid, scratch.path("folder"));
  EXPECT_EQ(perdure::test::restored(scratch.path("folder"), scratch.path("again"), {}), now);
}

TEST(Primary, WhatIsAppendedByACallThatThrowsIsNotAppendedAgain) {
  const Scratch scratch;
  const auto log = folder_log(scratch);
  const auto shared = std::make_shared<SharedLog>(log);
  std::uint8_t uuid[16];
  Contents now;
  {
    auto pool = ReplicatedPool::open(scratch.path(), options(shared));
    uuid_of(pool, uuid);
    (void)pool.backup(scratch.path("folder"));
    for (std::uint64_t i = 0; i < 20; ++i) {
      shared->throws = i % 3 == 1;
      pool.update(shipped, [&](auto& tx, BackedUp& r) { r.sorted.put(tx, i, "a row"); });
    }
    now = pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
  }
  (void)to_segment(*log, uuid, scratch.path("folder"));
  EXPECT_EQ(perdure::test::restored(scratch.path("folder"), scratch.path("again"), {}), now);
}

// PRIMARY-3: killed between its TERM frame and the header that has the place behind it, a copy with
// transactions that the log lacks knows that frame as its own.
TEST(Primary, KnowsItsOwnTermAfterAKill) {
  const Scratch scratch;
  const auto log = folder_log(scratch);
  { auto pool = ReplicatedPool::open(scratch.path(), options(log)); }
  const auto in_child = [](auto&& f) {
    const pid_t child = ::fork();
    if (child == 0) {
      f();
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(0, status);
  };
  const auto shared = std::make_shared<SharedLog>(log);
  in_child([&] {
    auto pool = ReplicatedPool::open(scratch.path(), options(shared));
    shared->off = true;
    for (int i = 0; i < 5; ++i)
      pool.update([&](auto& tx, BackedUp& r) { tx.write(r.count, tx.read(r.count) + 1); });
    ::_exit(0);
  });
  in_child([&] {
    shared->after = [](std::uint64_t) { ::_exit(0); };
    auto pool = ReplicatedPool::open(scratch.path(), options(shared));
  });
  auto pool = ReplicatedPool::open(scratch.path(), options(log));
  EXPECT_EQ(pool.replication().term, 4U);
  EXPECT_GE(pool.replication().shipped_id, 5U);
  pool.view([](auto& tx, const BackedUp& r) { EXPECT_EQ(tx.read(r.count), 5U); });
}

struct Other {
  p<std::uint64_t> one, another;
};

struct TwoCopies {
  TwoCopies() {
    auto pool = ReplicatedPool::open(scratch.path(), options(shared));
    uuid_of(pool, uuid);
    program.step(pool);
  }
  // Another copy that has all that the log has.
  Stream other() {
    Stream stream(log, uuid, {});
    const auto ignore = [](const backup::Frame&, const StreamPlace&) { return Status(); };
    EXPECT_EQ(stream.claim("0123456789abcdef the other one", ignore).value(),
              Stream::Claim::primary);
    return stream;
  }
  static void append(Stream& stream) {
    backup::FrameHeader h{};
    h.kind = backup::FrameKind::group;
    h.last = stream.place().end.last + 1;
    h.transactions = 1;
    const std::uint64_t entries[] = {log::entry_key(log::EntryKind::end, 0, 0), h.last};
    EXPECT_EQ(stream.append(h, entries, sizeof entries).value(), Stream::State::in_log);
  }
  // A copy of the file, which nobody has open, as a pool that is not replicated.
  [[nodiscard]] std::string parted() const {
    const std::string path = scratch.path("parted");
    std::filesystem::copy_file(scratch.path(), path);
    closed_without_its_log(path)->replicate({}).or_throw();
    return path;
  }
  const Scratch scratch;
  const std::shared_ptr<SimulatedLog> log = std::make_shared<SimulatedLog>(1);
  const std::shared_ptr<SharedLog> shared = std::make_shared<SharedLog>(log);
  std::uint8_t uuid[16];
  Program program{5};
};

TEST(Primary, IsDeposedAndHasDiverged) {
  TwoCopies two;
  std::uint64_t last = 0;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
    const auto before = pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 7); });
    EXPECT_TRUE(before.reached());
    two.shared->off = true;
    auto lost = pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
    last = lost.id();
    EXPECT_TRUE(lost.durable());
    TwoCopies::append(*std::make_unique<Stream>(two.other()));
    two.shared->off = false;
    EXPECT_EQ(lost.try_wait(shipped).code(), Code::deposed);
    EXPECT_TRUE(before.try_wait(shipped).ok());
    // PRIMARY-4
    const auto more = [&] { pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 9); }); };
    EXPECT_EQ(code_of(more), Code::deposed);
    EXPECT_FALSE(pool.replication().primary);
    EXPECT_EQ(code_of([&] { pool.close(); }), Code::deposed);
  }
  const auto again = ReplicatedPool::try_open(two.scratch.path(), options(two.shared));
  EXPECT_EQ(again.code(), Code::diverged);
  EXPECT_NE(again.status().message().find("transactions " + std::to_string(last) + " to " +
                                          std::to_string(last) + ", which the copy the other one"),
            std::string::npos)
      << again.status().message();
}

TEST(Primary, ThatIsIdleSeesThatItIsDeposed) {
  TwoCopies two;
  auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
  (void)two.other();
  for (int i = 0; i < 500 && pool.replication().primary; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_EQ(code_of([&] { two.program.step(pool); }), Code::deposed);
}

// A primary that was stopped for long: others have trimmed the log behind its place meanwhile.
TEST(Primary, IsDeposedWhereTheLogWasTrimmedBehindIt) {
  for (const bool under_way : {false, true}) {
    TwoCopies two;
    auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
    two.shared->off = true;
    if (under_way) pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 8); });
    wait_until([&] { return !pool.replication().problem.empty(); });
    Stream other = two.other();
    for (int i = 0; i < 3; ++i) TwoCopies::append(other);
    ASSERT_TRUE(two.log->trim(two.log->messages.size()).ok());
    two.shared->off = false;
    wait_until([&] { return !pool.replication().primary; });
    EXPECT_EQ(code_of([&] { two.program.step(pool); }), Code::deposed);
  }
}

TEST(Primary, ACopyThatLacksNothingMayTakeOverAndOthersMayNot) {
  TwoCopies two;
  const std::string older = two.scratch.path("older");
  std::filesystem::copy_file(two.scratch.path(), older);
  (void)two.other();  // which appends nothing
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
    EXPECT_EQ(pool.replication().term, 3U);
    two.program.step(pool);
  }
  auto opened = ReplicatedPool::try_open(older, options(two.shared));
  EXPECT_EQ(opened.code(), Code::deposed) << opened.status().message();
  std::filesystem::copy_file(two.scratch.path(), older,
                             std::filesystem::copy_options::overwrite_existing);
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
    two.program.step(pool);
  }
  opened = ReplicatedPool::try_open(older, options(two.shared));
  EXPECT_EQ(opened.code(), Code::deposed) << "it began no term after the copy was made";
  Stream other = two.other();
  TwoCopies::append(other);
  opened = ReplicatedPool::try_open(two.scratch.path(), options(two.shared));
  EXPECT_EQ(opened.code(), Code::deposed);
  EXPECT_NE(opened.status().message().find("the other one"), std::string::npos)
      << opened.status().message();
}

TEST(Primary, WithoutAnswersATransactionIsInDoubtAndCloseSaysSo) {
  TwoCopies two;
  Options o = options(two.shared);
  o.replicate.patience = 100ms;
  o.replicate.close_patience = 100ms;
  std::uint64_t last = 0;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), o);
    two.shared->off = true;
    auto receipt = pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 7); });
    EXPECT_EQ(code_of([&] { pool.update(shipped, [](auto&, BackedUp&) {}); }), Code::in_doubt);
    EXPECT_EQ(receipt.try_wait(shipped).code(), Code::in_doubt);
    EXPECT_FALSE(pool.replication().problem.empty());
    EXPECT_GT(pool.replication().behind, 0ms);
    two.shared->off = false;
    EXPECT_TRUE(receipt.try_wait(quorum).ok()) << "its servers say that they sync";
    EXPECT_TRUE(std::move(receipt).at(quorum).reached());
    two.shared->off = true;
    last = pool.update([](auto& tx, BackedUp& r) { tx.write(r.count, 8); }).id();
    EXPECT_EQ(code_of([&] { pool.close(); }), Code::unavailable);
  }
  EXPECT_EQ(ReplicatedPool::try_open(two.scratch.path(), o).code(), Code::unavailable);
  two.shared->off = false;
  auto pool = ReplicatedPool::open(two.scratch.path(), o);
  EXPECT_GE(pool.replication().shipped_id, last);
  pool.view([](auto& tx, const BackedUp& r) { EXPECT_EQ(tx.read(r.count), 8U); });
}

struct Coroutine {
  struct promise_type {
    Coroutine get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
};
Coroutine await(Receipt<int> receipt, std::atomic<int>& got) {
  got = co_await std::move(receipt).at(shipped);
}

TEST(Primary, ReceiptsTellWhenTheLogHasATransaction) {
  TwoCopies two;
  auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
  two.shared->off = true;
  std::atomic<int> got{0}, told{0};
  const auto one = [&](int n) {
    return pool.update([n](auto& tx, BackedUp& r) {
      tx.write(r.count, static_cast<std::uint64_t>(n));
      return n;
    });
  };
  await(one(5), got);
  one(6).at(shipped).then([](auto g) { g(); }, [&](const Status& s) { told = s.ok() ? 6 : -1; });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(got, 0);
  EXPECT_EQ(told, 0);
  two.shared->off = false;
  for (int i = 0; i < 1000 && (got == 0 || told == 0); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(got, 5);
  EXPECT_EQ(told, 6);
  // Within another transaction nothing is waited for.
  two.shared->off = true;
  const auto outer = pool.update([&](auto&, BackedUp&) {
    (void)pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 7); });
  });
  EXPECT_TRUE(outer.durable());
  two.shared->off = false;
}

// A log that does not answer: once the pool's own log is full of what it lacks, commits wait, and
// go on with it. Nothing is lost.
TEST(Primary, AFullLogWaitsForTheReplicatedOne) {
  TwoCopies two;
  auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
  two.shared->off = true;
  std::jthread switches([&](const std::stop_token& stop) {
    while (pool.replication().waits == 0 && !stop.stop_requested())
      std::this_thread::sleep_for(1ms);
    two.shared->off = false;
  });
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < 100; ++i)  // three times what the pool's own log has room for
    last = pool.update([&](auto& tx, BackedUp& r) {
                 r.sorted.put(tx, i % 10, std::string(30'000, 'x'));
               })
               .id();
  switches.request_stop();
  switches.join();
  EXPECT_GT(pool.replication().waits, 0U);
  pool.close();
  EXPECT_GE(pool.replication().shipped_id, last);
}

TEST(Primary, WhatItDoesToCommitsIsNothing) {
  const Scratch scratch;
  std::uint64_t fences[2], bytes[2];
  for (const bool replicated : {false, true}) {
    Options o = options(std::make_shared<SharedLog>(std::make_shared<SimulatedLog>(1)));
    if (!replicated) o.replicate = {};
    o.creation.log_size = 16 << 20;
    auto pool = ReplicatedPool::open(scratch.path(replicated ? "with" : "without"), o);
    Program program(9);
    const Stats before = pool.stats();
    for (int i = 0; i < 200; ++i) program.step(pool);
    const Stats after = pool.stats();
    EXPECT_EQ(after.checkpoints, before.checkpoints);
    fences[replicated ? 1 : 0] = after.medium.fences - before.medium.fences;
    bytes[replicated ? 1 : 0] = after.log_bytes - before.log_bytes;
  }
  EXPECT_EQ(fences[0], fences[1]);
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(Primary, WhatMakesNoSenseIsRefused) {
  TwoCopies two;
  const std::string path = two.scratch.path();
  const auto open = [](const std::string& p, const Options& o) {
    return ReplicatedPool::try_open(p, o).code();
  };
  Options alone = options(nullptr);
  const auto refused = ReplicatedPool::try_open(path, alone);
  EXPECT_EQ(refused.code(), Code::incompatible);
  EXPECT_NE(refused.status().message().find("replicated over a log"), std::string::npos);
  alone.read_only = true;
  EXPECT_EQ(open(path, alone), Code::ok);
  Options reads = options(two.shared);
  reads.read_only = true;
  EXPECT_EQ(open(path, reads), Code::invalid);
  Options both = options(two.shared);
  both.replicate.log = two.scratch.path("stream");
  EXPECT_EQ(open(path, both), Code::invalid);
  // A new pool, and a log that has another one's messages.
  EXPECT_EQ(open(two.scratch.path("new"), options(two.shared)), Code::incompatible);
  EXPECT_FALSE(std::filesystem::exists(two.scratch.path("new")));
  Options undo = options(std::make_shared<SimulatedLog>(1));
  undo.engine = "undo";
  EXPECT_EQ(open(two.scratch.path("undo"), undo), Code::unsupported);
  const auto small = std::make_shared<SimulatedLog>(1);
  small->largest = 2048;
  EXPECT_EQ(open(two.scratch.path("small"), options(small)), Code::unsupported);
  // A pool without a log waits for none; nor does one whose log is on one machine say `quorum`.
  auto plain = ReplicatedPool::open(two.scratch.path("plain"), options(nullptr));
  const auto change = [](auto& tx, BackedUp& r) { tx.write(r.count, 1); };
  EXPECT_EQ(plain.update(change).try_wait(shipped).code(), Code::invalid);
  EXPECT_FALSE(plain.replication().on);
  Options named = options(nullptr);
  named.replicate.log = two.scratch.path("stream");
  auto one = ReplicatedPool::open(two.scratch.path("one"), named);
  EXPECT_TRUE(one.update(shipped, change).reached());
  EXPECT_EQ(one.update(change).try_wait(quorum).code(), Code::unsupported);
  Options unknown = options(nullptr);
  unknown.replicate.log = "nats://127.0.0.1/shop";
  EXPECT_EQ(open(two.scratch.path("unknown"), unknown), Code::unsupported);
}

// The machine with the primary is lost: a copy is made of a backup and the log, and takes over.
TEST(Primary, ACopyOfABackupAndTheLogTakesOver) {
  TwoCopies two;
  const std::string folder = two.scratch.path("folder"), path = two.scratch.path();
  std::uint64_t last = 0;
  Contents before;
  {
    Options o = options(two.shared);
    o.replicate.close_patience = 100ms;
    auto pool = ReplicatedPool::open(path, o);
    (void)pool.backup(folder);
    for (int i = 0; i < 50; ++i) last = two.program.step(pool);
    EXPECT_TRUE(
        pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 1); }).reached());
    before = pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
    two.shared->off = true;
    two.program.step(pool);  // which is lost with the machine
  }
  two.shared->off = false;
  const auto store = backup::open_folder(folder, false).value();
  const std::string copy = two.scratch.path("copy");
  EXPECT_GT(make_copy(*store, two.shared, copy)->id, last);
  EXPECT_EQ(make_copy(*store, two.shared, copy).code(), Code::exists);
  const std::string another = two.scratch.path("another");
  ASSERT_TRUE(make_copy(*store, two.shared, another).ok());
  {
    auto pool = ReplicatedPool::open(copy, options(two.shared));
    EXPECT_EQ(pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); }), before);
    EXPECT_TRUE(pool.check().ok());
    EXPECT_EQ(0, std::memcmp(pool.header().uuid, two.uuid, sizeof two.uuid));
    for (int i = 0; i < 10; ++i) two.program.step(pool);
    (void)pool.backup(folder);
  }
  EXPECT_EQ(ReplicatedPool::try_open(another, options(two.shared)).code(), Code::deposed)
      << "it lacks what the other copy has appended";
  EXPECT_EQ(ReplicatedPool::try_open(path, options(two.shared)).code(), Code::diverged);
  std::filesystem::remove(another);
  ASSERT_TRUE(make_copy(*store, two.shared, another).ok());
  auto pool = ReplicatedPool::open(another, options(two.shared));
  EXPECT_EQ(pool.replication().term, 4U);
}

// While its servers choose a leader, a log does not answer: that is waited for.
TEST(Primary, ACopyAndATrimWaitForTheLog) {
  TwoCopies two;
  const std::string folder = two.scratch.path("folder"), copy = two.scratch.path("copy");
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
    for (int i = 0; i < 20; ++i) two.program.step(pool);
    (void)pool.backup(folder);
    for (int i = 0; i < 20; ++i) two.program.step(pool);
  }
  const auto store = backup::open_folder(folder, false).value();
  two.shared->silences = 3;
  const auto made = make_copy(*store, two.shared, copy);
  EXPECT_TRUE(made.ok()) << made.status().message();
  two.shared->silences = 3;
  const auto trimmed = trim_log(*store, two.shared);
  EXPECT_TRUE(trimmed.ok()) << trimmed.status().message();
  std::filesystem::remove(copy);
  two.shared->off = true;
  EXPECT_EQ(make_copy(*store, two.shared, copy, 50ms).code(), Code::unavailable);
  EXPECT_EQ(trim_log(*store, two.shared, 50ms).code(), Code::unavailable);
  EXPECT_FALSE(std::filesystem::exists(copy));
}

// Reads may show an older state of the log: a copy is whole, or not made.
TEST(Primary, ACopyIsWholeWhateverReadsShow) {
  TwoCopies two;
  const std::string folder = two.scratch.path("folder"), copy = two.scratch.path("copy");
  Contents now;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
    (void)pool.backup(folder);
    for (int i = 0; i < 50; ++i)
      pool.update(shipped, [&](auto& tx, BackedUp& r) { tx.write(r.count, tx.read(r.count) + 1); });
    now = pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
  }
  const auto stale = std::make_shared<SimulatedLog>(3, Faults{.stale = 60});
  stale->messages = two.log->messages;
  const auto store = backup::open_folder(folder, false).value();
  int made = 0;
  for (int i = 0; i < 40; ++i) {
    if (make_copy(*store, stale, copy).ok()) {
      ++made;
      // It may be of an older state: opened with the log, it lacks something then.
      const auto plain = std::make_shared<SimulatedLog>(1);
      plain->messages = two.log->messages;
      auto pool = ReplicatedPool::try_open(copy, options(std::make_shared<SharedLog>(plain)));
      EXPECT_TRUE(pool.ok() || pool.code() == Code::deposed) << pool.status().message();
      if (pool.ok()) {
        EXPECT_EQ(pool->view([](auto& tx, const BackedUp& r) { return contents(tx, r); }), now);
      }
    }
    std::filesystem::remove(copy);
  }
  EXPECT_GT(made, 0);
  const auto empty = std::make_shared<SimulatedLog>(1);
  EXPECT_EQ(make_copy(*store, empty, copy).code(), Code::not_found);
}

// The log of another pool, that is as long; and a pool's rest of the log that was dropped.
TEST(Primary, AnotherLogIsNotTakenForItsOwn) {
  TwoCopies two;
  const auto log = std::make_shared<SharedLog>(std::make_shared<SimulatedLog>(2));
  const std::string path = two.scratch.path("other");
  {
    auto pool = ReplicatedPool::open(path, options(log));
    Program(8).step(pool);
  }
  EXPECT_EQ(ReplicatedPool::try_open(path, options(two.shared)).code(), Code::corrupt);
  Options o = options(log);
  o.replicate.close_patience = 50ms;
  {
    auto pool = ReplicatedPool::open(path, o);
    log->off = true;
    Program(8).step(pool);
  }
  log->off = false;
  (void)closed_without_its_log(path);
  EXPECT_EQ(ReplicatedPool::try_open(path, o).code(), Code::incompatible);
}

// What fails has not deposed another copy, and leaves nothing that can't be gone on with.
TEST(Primary, AnOpeningThatFailsHarmsNothing) {
  TwoCopies two;
  const std::size_t before = two.log->messages.size();
  const auto opened = AnyPool<Other>::try_open(two.scratch.path(), options(two.shared));
  EXPECT_EQ(opened.code(), Code::incompatible) << opened.status().message();
  EXPECT_EQ(two.log->messages.size(), before);
  // A new pool whose first frame gets into the log, and no other.
  const auto log = std::make_shared<SharedLog>(std::make_shared<SimulatedLog>(2));
  log->after = [&](std::uint64_t) { log->off = true; };
  Options o = options(log);
  o.replicate.patience = 50ms;
  const std::string path = two.scratch.path("new");
  EXPECT_EQ(ReplicatedPool::try_open(path, o).code(), Code::unavailable);
  log->after = nullptr;
  log->off = false;
  auto pool = ReplicatedPool::open(path, o);
  Program(8).step(pool);
  EXPECT_EQ(pool.replication().term, 2U);
}

// A backup has nothing that the log may lack, and is not used if it has.
TEST(Primary, ABackupWaitsForTheLog) {
  TwoCopies two;
  const std::string folder = two.scratch.path("folder");
  Options o = options(two.shared);
  o.replicate.patience = o.replicate.close_patience = 100ms;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), o);
    two.shared->off = true;
    two.program.step(pool);
    EXPECT_EQ(code_of([&] { (void)pool.backup(folder); }), Code::in_doubt);
  }
  const std::string alone = two.parted();
  two.shared->off = false;
  const auto copy_of = [&](const std::string& name) {
    return make_copy(*backup::open_folder(folder, true).value(), two.shared, two.scratch.path(name))
        .code();
  };
  EXPECT_EQ(copy_of("none"), Code::not_found);
  {
    auto pool = ReplicatedPool::open(alone, options(nullptr));
    (void)pool.backup(folder);
  }
  EXPECT_EQ(copy_of("more"), Code::diverged) << "the log ends before the backup";
  Stream other = two.other();
  for (int i = 0; i < 5; ++i) TwoCopies::append(other);
  EXPECT_EQ(copy_of("other"), Code::diverged) << "another term began before the backup";
}

// The newest backup has what was lost with its machine: the one before it serves.
TEST(Primary, ACopyIsMadeOfABackupThatTheLogContinues) {
  TwoCopies two;
  const std::string folder = two.scratch.path("folder");
  Options o = options(two.shared);
  o.replicate.close_patience = 100ms;
  std::uint64_t first = 0;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), o);
    first = pool.backup(folder).id;
    (void)pool.update(shipped, [](auto& tx, BackedUp& r) { tx.write(r.count, 7); });
    two.shared->off = true;
    two.program.step(pool);
  }
  {
    // As `perdure backup` does, which knows nothing of the log.
    o.read_only = true;
    o.replicate = {};
    auto beside = ReplicatedPool::open(two.scratch.path(), o);
    EXPECT_GT(beside.backup(folder).id, first + 1);
  }
  two.shared->off = false;
  const std::string copy = two.scratch.path("copy");
  const auto made = make_copy(*backup::open_folder(folder, false).value(), two.shared, copy);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->backup_id, first);
  auto pool = ReplicatedPool::open(copy, options(two.shared));
  pool.view([](auto& tx, const BackedUp& r) { EXPECT_EQ(tx.read(r.count), 7U); });
}

// A copy that was restored, or made by copy_to(), is another pool.
TEST(Primary, ARestoredPoolIsNotReplicated) {
  TwoCopies two;
  {
    auto pool = ReplicatedPool::open(two.scratch.path(), options(two.shared));
    (void)pool.backup(two.scratch.path("folder"));
    pool.snapshot().copy_to(two.scratch.path("copy"));
  }
  (void)restore(two.scratch.path("folder"), two.scratch.path("again"));
  for (const char* const name : {"copy", "again"}) {
    auto pool = ReplicatedPool::open(two.scratch.path(name), options(nullptr));
    two.program.step(pool);
  }
}

}  // namespace
}  // namespace perdure::replication::test
