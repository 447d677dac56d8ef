// SPDX-License-Identifier: BSD-3-Clause
//
// Options::archive: every state of a pool can be restored, also after kills (ARCHIVE-1 to 3); the
// log waits for the archive, or gives it up (FLOOR-1); what an archive refuses.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "perdure/backup/store.hpp"
#include "tests/backup/failing_store.hpp"
#include "tests/backup/history.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;
using std::chrono::milliseconds;

std::vector<EngineInfo> with_snapshots() {
  return engines_that([](const EngineInfo& e) { return e.has_snapshots; });
}

class Archives : public EngineTest {
 protected:
  [[nodiscard]] Options options(const std::string& medium = "emulated") const {
    Options o;
    o.engine = GetParam().name;
    o.medium = medium;
    o.medium_options.direct = false;
    o.creation.max_size = std::uint64_t{1} << 30;
    o.creation.log_size = 8 << 20;
    o.archive.folder = folder_;
    return o;
  }
  [[nodiscard]] Options options_on(std::shared_ptr<FailingStore> store) const {
    Options o = options();
    o.archive.folder.clear();
    o.archive.store = std::move(store);
    return o;
  }
  // All states that the program knows from `first` on are restored and compared, but for those that
  // `every` leaves out.
  void expect_states(const Program& program, std::uint64_t first, std::uint64_t every = 1) const {
    std::uint64_t n = 0;
    for (const auto& [id, state] : program.states()) {
      if (id < first || n++ % every != 0) continue;
      RestoreReport report;
      ASSERT_EQ(state, restored(folder_, to_, {.id = id}, &report)) << id;
      EXPECT_EQ(id, report.id);
    }
    EXPECT_EQ(program.states().rbegin()->second, restored(folder_, to_, {}));
  }
  Scratch scratch_;
  std::string path_ = scratch_.path(), folder_ = scratch_.path("archive"),
              to_ = scratch_.path("restored");
};

TEST_P(Archives, EachStateIsRestored) {
  Program program(1);
  {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    program.knows(pool);
    for (int i = 0; i < 120; ++i) program.step(pool);
    EXPECT_TRUE(pool.archive().on);
    pool.flush_archive();
    EXPECT_EQ(pool.stats().last_id, pool.archive().last_id);
    pool.close();
  }
  expect_states(program, 0);
  EXPECT_TRUE(verify_backups(folder_).ok());
}

// On a file the order is pipelined, and a record may hold several transactions.
TEST_P(Archives, EachStateIsRestoredFromGroups) {
  Program program(2);
  {
    Options o = options("file");
    o.durability = Durability::async;
    auto pool = AnyPool<BackedUp>::open(path_, o);
    program.knows(pool);
    for (int i = 0; i < 200; ++i) program.step(pool);
    pool.close();
  }
  expect_states(program, 0, 3);
}

// Sessions follow each other; backups are made in between, and the newest one is restored from.
TEST_P(Archives, GoesOnInTheNextSession) {
  Program program(3);
  std::uint64_t backup = 0;
  for (int session = 0; session < 3; ++session) {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    program.knows(pool);
    EXPECT_EQ(0U, pool.archive().gaps);
    for (int i = 0; i < 40; ++i) program.step(pool);
    if (session == 1) backup = pool.backup().id;
    for (int i = 0; i < 20; ++i) program.step(pool);
    pool.close();
  }
  expect_states(program, 0, 3);
  RestoreReport report;
  (void)restored(folder_, to_, {}, &report);
  EXPECT_EQ(backup, report.backup_id);
  EXPECT_FALSE(report.gap);
  const VerifyReport found = verify_backups(folder_);
  EXPECT_TRUE(found.ok());
  ASSERT_EQ(1U, found.runs.size());
  EXPECT_EQ(program.states().rbegin()->first, found.runs[0].last);
  EXPECT_EQ(2U, found.backups.size());
}

// A log that is much smaller than what is written: its bytes are used again and again (FLOOR-1).
TEST_P(Archives, TheLogIsReusedBehindTheArchive) {
  Program program(4);
  {
    Options o = options();
    o.creation.log_size = 512 << 10;
    o.creation.threads = 1;
    o.archive.file_age = std::chrono::hours(1);
    auto pool = AnyPool<BackedUp>::open(path_, o);
    program.knows(pool);
    std::uint64_t before = pool.stats().log_bytes;
    while (pool.stats().log_bytes - before < 3 << 20) {
      program.step(pool);
      // and bytes that make the log go round faster
      pool.update([&](auto& tx, BackedUp& r) {
        r.sorted.put(tx, 1000, std::string(20000, 'x'));
        r.sorted.erase(tx, 1000);
      });
      program.knows(pool);
    }
    EXPECT_GT(pool.stats().checkpoints, 3U);
    pool.close();
  }
  expect_states(program, 0, 7);
}

// The process is killed with transactions in the log that the archive does not have (ARCHIVE-2).
TEST_P(Archives, CatchesUpAfterAKill) {
  for (const std::string medium : {"emulated", "file"}) {
    Scratch scratch;
    path_ = scratch.path();
    folder_ = scratch.path("archive");
    to_ = scratch.path("restored");
    constexpr int steps = 60;
    const pid_t child = ::fork();
    if (child == 0) {
      Options o = options(medium);
      o.archive.file_age = std::chrono::hours(1);  // nothing but what opening writes
      auto pool = AnyPool<BackedUp>::open(path_, o);
      Program program(5);
      program.knows(pool);
      for (int i = 0; i < steps; ++i) program.step(pool);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    ASSERT_TRUE(WIFSIGNALED(status));
    // The same program, without an archive, says what the states were.
    Program same(5);
    {
      Options o = options(medium);
      o.archive = {};
      auto other = AnyPool<BackedUp>::open(scratch.path("other"), o);
      same.knows(other);
      for (int i = 0; i < steps; ++i) same.step(other);
    }
    {
      auto pool = AnyPool<BackedUp>::open(path_, options(medium));
      EXPECT_EQ(0U, pool.archive().gaps);
      EXPECT_EQ(same.states().rbegin()->first, pool.archive().last_id);
      for (int i = 0; i < 10; ++i) same.step(pool);
      pool.close();
    }
    expect_states(same, 0, 5);
  }
}

// A session without the archive leaves a gap (ARCHIVE-3). It is seen, and the archive begins anew.
TEST_P(Archives, AGapIsSeen) {
  Program program(6);
  std::uint64_t before = 0, inside = 0, after = 0;
  {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    program.knows(pool);
    for (int i = 0; i < 10; ++i) before = program.step(pool);
    pool.close();
  }
  {
    Options o = options();
    o.archive = {};
    auto pool = AnyPool<BackedUp>::open(path_, o);
    for (int i = 0; i < 10; ++i) inside = program.step(pool);
    pool.close();
  }
  {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    EXPECT_EQ(1U, pool.archive().gaps);
    for (int i = 0; i < 10; ++i) after = program.step(pool);
    pool.close();
  }
  EXPECT_EQ(program.at(before), restored(folder_, to_, {.id = before}));
  EXPECT_EQ(program.at(after), restored(folder_, to_, {}));
  // The newest state of the gap is that of the backup behind it.
  EXPECT_EQ(program.at(inside), restored(folder_, to_, {.id = inside}));
  try {
    (void)restored(folder_, to_, {.id = inside - 1});
    ADD_FAILURE() << "restored from nothing";
  } catch (const error& e) {
    EXPECT_EQ(Code::not_found, e.code()) << e.what();
  }
  const VerifyReport found = verify_backups(folder_);
  EXPECT_TRUE(found.ok()) << found.problems.front();
  EXPECT_EQ(2U, found.runs.size());
}

// A session that changed nothing leaves none.
TEST_P(Archives, ASessionThatOnlyReadsLeavesNoGap) {
  Program program(7);
  {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    program.knows(pool);
    for (int i = 0; i < 10; ++i) program.step(pool);
    pool.close();
  }
  {
    Options o = options();
    o.archive = {};
    auto pool = AnyPool<BackedUp>::open(path_, o);
    pool.close();
  }
  auto pool = AnyPool<BackedUp>::open(path_, options());
  EXPECT_EQ(0U, pool.archive().gaps);
  pool.close();
}

TEST_P(Archives, RefusesWhatIsNotItsOwn) {
  const auto code = [&](const std::string& path) {
    const auto pool = AnyPool<BackedUp>::try_open(path, options());
    return pool.ok() ? Code::ok : pool.code();
  };
  Program program(8);
  {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    program.step(pool);
    EXPECT_EQ(Code::busy, code(scratch_.path("other"))) << "another pool's";
    EXPECT_FALSE(std::filesystem::exists(scratch_.path("other")));
    pool.close();
    std::filesystem::copy_file(path_, scratch_.path("older"));
  }
  EXPECT_EQ(Code::incompatible, code(scratch_.path("other")));
  {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    program.step(pool);
    pool.close();
  }
  EXPECT_EQ(Code::incompatible, code(scratch_.path("older"))) << "a copy that lacks transactions";
  {
    Options o = options();
    o.read_only = true;
    EXPECT_EQ(Code::invalid, AnyPool<BackedUp>::try_open(path_, o).code());
  }
  // What was restored has a uuid of its own, and needs an archive of its own.
  (void)restore(folder_, to_, {});
  EXPECT_EQ(Code::incompatible, code(to_));
}

// A change of the header between two transactions is restored from its place on, also where a
// backup has the state before it.
TEST_P(Archives, ARaisedLimitIsRestored) {
  Program program(11);
  constexpr std::uint64_t raised = std::uint64_t{4} << 30;
  {
    auto pool = AnyPool<BackedUp>::open(path_, options());
    program.knows(pool);
    for (int i = 0; i < 10; ++i) program.step(pool);
    (void)pool.backup();
    pool.close();
  }
  {
    Options o = options();
    o.creation.max_size = raised;
    o.creation.raise_max_size = true;
    auto pool = AnyPool<BackedUp>::open(path_, o);
    for (int i = 0; i < 40; ++i) program.step(pool);
    pool.close();
  }
  expect_states(program, 0, 9);
  (void)restore(folder_, to_, {});
  auto pool = AnyPool<BackedUp>::open(to_, {});
  EXPECT_EQ(raised, pool::Directory(pool.header()).max_data_bytes());
  EXPECT_TRUE(pool.check().ok());
}

// The archive's folder has a backup that is newer than the pool.
TEST_P(Archives, ACopyThatIsOlderThanABackupIsRefused) {
  Program program(12);
  {
    Options o = options();
    o.archive = {};
    auto pool = AnyPool<BackedUp>::open(path_, o);
    for (int i = 0; i < 5; ++i) program.step(pool);
    pool.close();
    std::filesystem::copy_file(path_, scratch_.path("older"));
  }
  {
    Options o = options();
    o.archive = {};
    auto pool = AnyPool<BackedUp>::open(path_, o);
    for (int i = 0; i < 5; ++i) program.step(pool);
    (void)pool.backup(folder_);
    pool.close();
  }
  const auto older = AnyPool<BackedUp>::try_open(scratch_.path("older"), options());
  ASSERT_FALSE(older.ok());
  EXPECT_EQ(Code::incompatible, older.code());
  auto pool = AnyPool<BackedUp>::open(path_, options());
  EXPECT_TRUE(pool.archive().on);
}

// An opening after a kill needs the archive for what only the log has: it fails where the archive
// can't be written, and loses nothing.
TEST_P(Archives, AnOpeningThatCantArchiveTheLogFails) {
  auto store = std::make_shared<FailingStore>(folder_);
  Options o = options_on(store);
  o.archive.file_age = std::chrono::hours(1);
  const pid_t child = ::fork();
  if (child == 0) {
    auto pool = AnyPool<BackedUp>::open(path_, o);
    Program program(13);
    for (int i = 0; i < 20; ++i) program.step(pool);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  store->fails = true;
  for (int i = 0; i < 3; ++i) {
    const auto pool = AnyPool<BackedUp>::try_open(path_, o);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(Code::full, pool.code());
  }
  store->fails = false;
  Program program(14);
  {
    auto pool = AnyPool<BackedUp>::open(path_, o);
    EXPECT_EQ(0U, pool.archive().gaps);
    program.knows(pool);
    pool.close();
  }
  EXPECT_EQ(20U, restored(folder_, to_, {}).count);
}

TEST(ArchivesOfOtherEngines, AreRefused) {
  Scratch scratch;
  Options o;
  o.engine = "undo";
  o.archive.folder = scratch.path("archive");
  const auto pool = AnyPool<BackedUp>::try_open(scratch.path(), o);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(Code::unsupported, pool.code());
}

// A put that has made the object and returned an error is repeated with the same bytes.
TEST_P(Archives, APutOfUnknownOutcomeIsRepeated) {
  auto store = std::make_shared<FailingStore>(folder_);
  Program program(15);
  {
    Options o = options_on(store);
    o.archive.file_age = milliseconds(1);
    auto pool = AnyPool<BackedUp>::open(path_, o);
    program.knows(pool);
    for (int i = 0; i < 30; ++i) {
      if (i % 10 == 3) store->lies = 1;
      program.step(pool);
      std::this_thread::sleep_for(milliseconds(3));
    }
    // The last lie may be told to this call.
    while (pool.archive().last_id != pool.stats().last_id) try {
        pool.flush_archive();
      } catch (const error& e) {
        EXPECT_EQ(Code::io, e.code());
      }
    EXPECT_EQ(pool.stats().last_id, pool.archive().last_id);
    pool.close();
  }
  EXPECT_TRUE(verify_backups(folder_).ok());
  expect_states(program, 0, 5);
}

// More has gathered than the archive keeps while its store fails. flush_archive() returns when
// everything is there, a close leaves nothing out, and so does a change of the header (the pool's
// first event) that comes first.
TEST_P(Archives, ABacklogIsWrittenWhole) {
  for (const int how : {0, 1, 2}) {
    SCOPED_TRACE(how);
    const std::string path = path_ + std::to_string(how), folder = folder_ + std::to_string(how);
    auto store = std::make_shared<FailingStore>(folder);
    Program program(16);
    Options o = options_on(store);
    o.archive.file_bytes = 4096;
    {
      auto pool = AnyPool<BackedUp>::open(path, o);
      program.knows(pool);
      store->fails = true;
      std::uint64_t last = 0;
      for (int i = 0; i < 400; ++i) last = program.step(pool);
      // Until it has tried again, with as much as it keeps.
      for (const int before = store->refused; store->refused < before + 2;)
        std::this_thread::sleep_for(milliseconds(1));
      for (int i = 0; i < 400; ++i) last = program.step(pool);
      store->fails = false;
      if (how == 0) {
        pool.flush_archive();
        EXPECT_EQ(last, pool.archive().last_id);
        const VerifyReport found = verify_backups(folder);  // while the pool is open
        EXPECT_TRUE(found.ok());
        EXPECT_EQ(last, found.backups.back().restores_to);
      }
      if (how == 2) {
        pool.update([](auto& tx, BackedUp&) { tx.emit("kept", "an event"); });
        program.knows(pool);
      }
      pool.close();
    }
    std::uint64_t n = 0;
    for (const auto& [id, state] : program.states()) {
      if (n++ % 30 != 0 && n != program.states().size()) continue;
      EXPECT_EQ(state, restored(folder, to_, {.id = id})) << id;
    }
  }
}

// An opening that fails after it made the pool leaves the folder to the next one.
TEST_P(Archives, AFailedFirstOpeningLeavesTheFolder) {
  auto store = std::make_shared<FailingStore>(folder_);
  Options o = options_on(store);
  store->fails_chunks = true;
  EXPECT_FALSE(AnyPool<BackedUp>::try_open(path_, o).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  store->fails_chunks = false;
  Program program(17);
  {
    auto pool = AnyPool<BackedUp>::open(path_, o);
    program.step(pool);
    pool.close();
  }
  EXPECT_EQ(program.states().rbegin()->second, restored(folder_, to_, {}));
}

// Policy wait: commits wait for an archive that can't be written, and nothing is missing later.
TEST_P(Archives, CommitsWaitForIt) {
  auto store = std::make_shared<FailingStore>(folder_);
  Program program(9);
  {
    Options o = options_on(store);
    o.creation.log_size = 256 << 10;
    o.creation.threads = 1;
    auto pool = AnyPool<BackedUp>::open(path_, o);
    program.knows(pool);
    store->fails = true;
    std::atomic<std::uint64_t> done{0};
    std::thread writer([&] {
      for (int i = 0; i < 200; ++i) {
        program.step(pool);
        pool.update([&](auto& tx, BackedUp& r) {
          r.sorted.put(tx, 1000, std::string(5000, static_cast<char>('a' + i % 26)));
        });
        program.knows(pool);
        ++done;
      }
    });
    while (pool.archive().waits == 0 || pool.archive().problem.empty())
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_LT(done, 200U);
    EXPECT_NE("", pool.archive().problem);
    const std::uint64_t stuck = done;
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_LE(done, stuck + 1);
    store->fails = false;
    writer.join();
    pool.close();
  }
  expect_states(program, 0, 29);
}

// Policy give_up: the pool goes on, and the gap is seen at the next opening.
TEST_P(Archives, IsGivenUp) {
  auto store = std::make_shared<FailingStore>(folder_);
  Program program(10);
  Options o = options_on(store);
  o.creation.log_size = 256 << 10;
  o.creation.threads = 1;
  o.archive.when_full = ArchiveOptions::WhenFull::give_up;
  o.archive.patience = milliseconds(20);
  std::uint64_t kept = 0;
  {
    auto pool = AnyPool<BackedUp>::open(path_, o);
    program.knows(pool);
    for (int i = 0; i < 5; ++i) kept = program.step(pool);
    pool.flush_archive();
    store->fails = true;
    for (int i = 0; i < 100; ++i) {
      program.step(pool);
      pool.update([&](auto& tx, BackedUp& r) {
        r.sorted.put(tx, 1000, std::string(5000, static_cast<char>('a' + i % 26)));
      });
    }
    for (int i = 0; i < 5000 && pool.archive().on; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_FALSE(pool.archive().on);
    EXPECT_NE("", pool.archive().problem);
    EXPECT_THROW(pool.flush_archive(), error);
    program.knows(pool);
    pool.close();
  }
  store->fails = false;
  EXPECT_EQ(program.at(kept), restored(folder_, to_, {.id = kept}));
  {
    auto pool = AnyPool<BackedUp>::open(path_, o);
    EXPECT_EQ(1U, pool.archive().gaps);
    pool.close();
  }
  EXPECT_EQ(program.states().rbegin()->second, restored(folder_, to_, {}));
}

// Several threads commit; the archive has each of their transactions, in the order of the ids.
TEST_P(Archives, BesideThreads) {
  constexpr std::uint64_t threads = 3, each = 400;
  {
    Options o = options();
    o.archive.file_age = milliseconds(5);
    auto pool = AnyPool<BackedUp>::open(path_, o);
    in_threads(threads, [&](int me) {
      std::mt19937_64 random(static_cast<std::uint64_t>(me));
      for (std::uint64_t i = 0; i < each; ++i)
        pool.update([&](auto& tx, BackedUp& r) {
          r.sorted.put(tx, random() % 100, std::string(random() % 50, 'y'));
          tx.write(r.count, tx.read(r.count) + 1);
        });
    });
    pool.close();
  }
  const VerifyReport found = verify_backups(folder_);
  EXPECT_TRUE(found.ok());
  // Each transaction adds one: a state that lacks one or has one twice does not have its number.
  const std::uint64_t last = found.runs.back().last;
  for (std::uint64_t id = last; id > last - 20; --id)
    EXPECT_EQ(id - (last - threads * each), restored(folder_, to_, {.id = id}).count);
}

ENGINE_SUITE(Archives, with_snapshots);

}  // namespace
}  // namespace perdure::test
