// SPDX-License-Identifier: BSD-3-Clause
//
// Events: what transactions emit, in their order, each once; from the log and from the archive; by
// the program and by another process.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "perdure/backup/restore.hpp"
#include "perdure/log/note.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tests/readers/process.hpp"
#include "tests/support/comes.hpp"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using test::Line;
using test::Process;

struct Root {
  p<std::uint64_t> count;
  map<std::uint64_t, std::string> text;
};
using RootPool = Pool<Root>;

struct How {
  std::string name, medium, engine;
  Durability durability;
};

class Events : public testing::TestWithParam<How> {
 protected:
  Events() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("events_") + test->name() + "_" + std::to_string(::getpid());
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = std::filesystem::path(testing::TempDir()) / name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "pool").string();
    archive_ = (folder_ / "archive").string();
  }
  ~Events() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] Options options(bool archive) const {
    Options o;
    o.medium = GetParam().medium;
    o.engine = GetParam().engine;
    o.durability = GetParam().durability;
    o.creation.log_size = 1 << 20;
    o.creation.threads = 2;
    if (archive) o.archive.folder = archive_;
    o.archive.file_age = 20ms;
    return o;
  }
  // Transaction n of those below: n % 4 events.
  static std::uint64_t step(RootPool& pool, std::uint64_t n) {
    return pool
        .update([n](tx& tx, Root& root) {
          for (std::uint64_t i = 0; i < n % 4; ++i)
            tx.emit(i % 2 == 0 ? "even/" + std::to_string(i) : "odd",
                    std::to_string(n) + "." + std::to_string(i) +
                        std::string(n * 13 % 300, static_cast<char>('a' + n % 26)),
                    static_cast<std::uint16_t>(n));
          tx(root.count) = n;
          root.text.put(tx, n % 50, std::string(n % 500, 'x'));
        })
        .id();
  }
  static void expect(const Event& event, std::uint64_t n, std::uint32_t ordinal, std::uint64_t id) {
    EXPECT_EQ((EventPosition{id, ordinal}), event.position);
    EXPECT_EQ(ordinal % 2 == 0 ? "even/" + std::to_string(ordinal) : "odd", event.topic);
    EXPECT_EQ(std::to_string(n) + "." + std::to_string(ordinal) +
                  std::string(n * 13 % 300, static_cast<char>('a' + n % 26)),
              event.bytes);
    EXPECT_EQ(static_cast<std::uint16_t>(n), event.schema);
    EXPECT_GT(event.unix_ns, 1'700'000'000'000'000'000U);
  }
  // Reads the events of transactions [from, to), whose ids are known.
  static void expect_all(EventStream& stream, std::uint64_t from, std::uint64_t to,
                         const std::vector<std::uint64_t>& ids) {
    Event event;
    for (std::uint64_t n = from; n < to; ++n)
      for (std::uint32_t i = 0; i < n % 4; ++i) {
        ASSERT_TRUE(stream.next(event, 10s)) << n << "." << i;
        expect(event, n, i, ids[n]);
        if (testing::Test::HasFailure()) return;
      }
  }
  std::filesystem::path folder_;
  std::string path_, archive_;
};

TEST_P(Events, ComeInOrder) {
  auto pool = RootPool::open(path_, options(false));
  auto stream = pool.events();
  std::vector<std::uint64_t> ids;
  for (std::uint64_t n = 0; n < 200; ++n) {
    ids.push_back(step(pool, n));
    if (n % 20 == 19) expect_all(stream, n - 19, n + 1, ids);
  }
  Event event;
  EXPECT_FALSE(stream.next(event, 1ms));
  EXPECT_EQ((EventPosition{ids[199]}), stream.position()) << "all of it is passed";
  // From a position in the middle of a transaction.
  EventOptions from;
  from.after = EventPosition{ids[199], 0};
  auto again = pool.events(from);
  for (std::uint32_t i = 1; i < 3; ++i) {
    ASSERT_TRUE(again.next(event, 10s));
    expect(event, 199, i, ids[199]);
  }
  EXPECT_FALSE(again.next(event, 1ms));
}

TEST_P(Events, OfATopic) {
  auto pool = RootPool::open(path_, options(false));
  auto odd = pool.events({.topic = "odd"}), even = pool.events({.topic = "even/*"}),
       none = pool.events({.topic = "eve"});
  const std::uint64_t id = step(pool, 3);
  Event event;
  ASSERT_TRUE(odd.next(event, 10s));
  expect(event, 3, 1, id);
  EXPECT_FALSE(odd.next(event, 1ms));
  for (const std::uint32_t i : {0U, 2U}) {
    ASSERT_TRUE(even.next(event, 10s));
    expect(event, 3, i, id);
  }
  EXPECT_FALSE(even.next(event, 1ms));
  EXPECT_FALSE(none.next(event, 1ms));
}

TEST_P(Events, OfTransactionsThatCommit) {
  auto pool = RootPool::open(path_, options(false));
  auto stream = pool.events();
  EXPECT_THROW(pool.update([](tx& tx, Root&) {
    tx.emit("t", "never");
    abort(tx);
  }),
               aborted);
  // Alone in its transaction, and empty.
  const std::uint64_t id = pool.update([](tx& tx, Root&) { tx.emit("t", ""); }).id();
  EXPECT_NE(0U, id);
  Event event;
  ASSERT_TRUE(stream.next(event, 10s));
  EXPECT_EQ("t", event.topic);
  EXPECT_EQ("", event.bytes);
  EXPECT_EQ((EventPosition{id, 0}), event.position);
  for (const std::string& topic : {std::string(), std::string(256, 't')})
    EXPECT_EQ(Code::invalid, pool.try_update([&](tx& tx, Root&) { tx.emit(topic, "x"); }).code());
  EXPECT_EQ(
      Code::too_big,
      pool.try_update([&](tx& tx, Root&) { tx.emit("t", std::string(600 << 10, 'x')); }).code());
  const std::string large(200 << 10, 'y');
  (void)pool.update([&](tx& tx, Root&) { tx.emit("t", large); });
  ASSERT_TRUE(stream.next(event, 10s));
  EXPECT_EQ(large, event.bytes);
}

TEST_P(Events, SurviveACloseAndARecovery) {
  std::vector<std::uint64_t> ids;
  {
    auto pool = RootPool::open(path_, options(true));
    for (std::uint64_t n = 0; n < 50; ++n) ids.push_back(step(pool, n));
    EXPECT_TRUE(pool.file().has_feature(pool::Feature::note_entries));
    pool.close();
  }
  {
    auto pool = RootPool::open(path_, options(true));
    auto stream = pool.events({.after = EventPosition::start()});
    for (std::uint64_t n = 50; n < 100; ++n) ids.push_back(step(pool, n));
    expect_all(stream, 0, 100, ids);
    EXPECT_TRUE(pool.check().ok());
    EXPECT_EQ(99U, pool.view([](rtx& tx, const Root& root) { return tx(root.count); }));
  }
  auto archived = open_archived_events({.after = EventPosition::start(), .archive = archive_});
  expect_all(archived, 0, 100, ids);
  // What is restored has the objects, and no events.
  const std::string restored = (folder_ / "restored").string();
  (void)restore(archive_, restored);
  auto pool = RootPool::open(restored, options(false));
  EXPECT_EQ(99U, pool.view([](rtx& tx, const Root& root) { return tx(root.count); }));
  EXPECT_TRUE(pool.check().ok());
}

// The log is lapped many times.
TEST_P(Events, ComeFromTheArchiveWhereTheLogHasNoneLeft) {
  auto pool = RootPool::open(path_, options(true));
  auto slow = pool.events();
  std::vector<std::uint64_t> ids;
  for (std::uint64_t n = 0; n < 8000; ++n) ids.push_back(step(pool, n));
  expect_all(slow, 0, 8000, ids);
}

TEST_P(Events, AreSaidToBeGone) {
  auto pool = RootPool::open(path_, options(false));
  auto slow = pool.events();
  std::uint64_t last = 0;
  for (std::uint64_t n = 0; n < 8000; ++n) last = step(pool, n);
  Event event;
  try {
    while (slow.next(event, 10s)) {}
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(Code::expired, e.code()) << e.what();
    EXPECT_NE(std::string::npos, std::string(e.what()).find("or later")) << e.what();
  }
  auto next = pool.events();
  const std::uint64_t id = step(pool, 1);
  EXPECT_GT(id, last);
  ASSERT_TRUE(next.next(event, 10s));
  expect(event, 1, 0, id);
}

TEST_P(Events, OfSeveralThreads) {
  auto pool = RootPool::open(path_, options(true));
  std::mutex mutex;
  std::vector<Event> seen;
  auto following = pool.follow({}, [&](const Event& event) {
    const std::lock_guard lock(mutex);
    seen.push_back(event);
    return true;
  });
  constexpr std::uint64_t each = 3000;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < each; ++n)
        (void)pool.update([&](tx& tx, Root& root) {
          tx(root.count) = tx(root.count) + 1;
          tx.emit("t", std::to_string(t) + ":" + std::to_string(n) + ":" +
                           std::to_string(std::uint64_t{tx(root.count)}));
        });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(test::comes([&] {
    const std::lock_guard lock(mutex);
    return seen.size() >= 3 * each;
  }));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(3 * each, seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (i > 0) {
      ASSERT_LT(seen[i - 1].position, seen[i].position);
    }
    const std::string& bytes = seen[i].bytes;  // the counter tells the order of the transactions
    ASSERT_EQ(std::to_string(i + 1), bytes.substr(bytes.rfind(':') + 1));
  }
  EXPECT_TRUE(following.status().ok());
}

TEST_P(Events, OfAnotherProcess) {
  Process writer([this](Line& line) {
    auto pool = RootPool::open(path_, options(true));
    for (std::uint64_t n = 0; line.receive(n);) line.send(step(pool, n));
  });
  std::vector<std::uint64_t> ids{writer.ask(0)};
  auto stream = open_events(path_, {.archive = archive_});
  for (std::uint64_t n = 1; n < 300; ++n) {
    ids.push_back(writer.ask(n));
    if (n % 30 == 29) expect_all(stream, n < 30 ? 1 : n - 29, n + 1, ids);
  }
  // A pool that follows has them, too, and passes over them.
  stream = open_archived_events({.archive = archive_});
  Options reads = options(false);
  reads.read_only = true;
  auto pool = RootPool::open(path_, reads);
  auto own = pool.events();
  EXPECT_EQ(299U, pool.view([](rtx& tx, const Root& root) { return tx(root.count); }));
  ids.push_back(writer.ask(300));
  ids.push_back(writer.ask(301));
  expect_all(own, 300, 302, ids);  // whatever its views have seen
  EXPECT_TRUE(pool.check().ok());
  if (GetParam().durability == Durability::async) return;
  // A killed writer's last events.
  ids.push_back(writer.ask(302));
  writer.kill(SIGKILL);
  (void)writer.wait();
  pool = RootPool::open((folder_ / "other").string(), {});
  auto left = open_events(path_, {.after = EventPosition{ids[301]}, .archive = archive_});
  expect_all(left, 302, 303, ids);
}

TEST_P(Events, AConsumerGoesOnWhereItWas) {
  auto pool = RootPool::open(path_, options(true));
  std::vector<std::uint64_t> ids;
  const EventOptions named{.consumer = "mailer"};
  {
    auto stream = pool.events(named);
    for (std::uint64_t n = 0; n < 40; ++n) ids.push_back(step(pool, n));
    expect_all(stream, 0, 20, ids);
    stream.acknowledge();
    stream.acknowledge();
    expect_all(stream, 20, 40, ids);  // and dies
  }
  {
    auto stream = pool.events(named);
    expect_all(stream, 20, 40, ids);
    stream.acknowledge();
  }
  Event event;
  EXPECT_FALSE(pool.events(named).next(event, 1ms));
  EXPECT_THROW((void)pool.events({.consumer = "No"}), error);
  EXPECT_THROW(pool.events().acknowledge(), error);
}

// A session without the archive: neither it nor the log has what was emitted there.
TEST_P(Events, AGapIsTold) {
  std::uint64_t before = 0;
  {
    auto pool = RootPool::open(path_, options(true));
    before = step(pool, 3);
  }
  {
    auto pool = RootPool::open(path_, options(false));
    for (std::uint64_t n = 0; n < 50; ++n) (void)step(pool, n);
  }
  auto pool = RootPool::open(path_, options(true));
  Event event;
  EventOptions from{.archive = archive_};
  from.after = EventPosition{before};
  auto late = pool.events(from);
  EXPECT_THROW((void)late.next(event, 10s), error);
  // A folder that has nothing.
  std::filesystem::create_directories(folder_ / "empty");
  from.archive = (folder_ / "empty").string();
  auto empty = pool.events(from);
  EXPECT_THROW((void)empty.next(event, 10s), error);
}

TEST_P(Events, APositionThatThePoolHasNotIsRefused) {
  auto pool = RootPool::open(path_, options(false));
  const std::uint64_t id = step(pool, 1);
  EventOptions from;
  from.after = EventPosition{id + 1};
  try {
    (void)pool.events(from);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(Code::incompatible, e.code()) << e.what();
  }
  from.after = EventPosition{id};
  Event event;
  EXPECT_FALSE(pool.events(from).next(event, 1ms));
}

TEST_P(Events, AFollowerWithANameGoesOnWhereItWas) {
  auto pool = RootPool::open(path_, options(true));
  const EventOptions named{.topic = "odd", .consumer = "index"};
  std::atomic<int> seen{0};
  const auto count = [&](const Event&) { return ++seen < 3; };
  {
    auto following = pool.follow(named, count);
    for (std::uint64_t n = 2; n < 60; n += 4) (void)step(pool, n);  // one `odd` each
    ASSERT_TRUE(test::comes([&] { return seen == 3; }));
    EXPECT_TRUE(following.status().ok());
  }
  // The third was refused: it comes again.
  auto stream = pool.events(named);
  Event event;
  for (std::uint64_t n = 10; n < 60; n += 4) {
    ASSERT_TRUE(stream.next(event, 10s));
    EXPECT_EQ(static_cast<std::uint16_t>(n), event.schema);
  }
  EXPECT_FALSE(stream.next(event, 1ms));
}

// What a consumer has not had is not pruned.
TEST_P(Events, ArePrunedWhenAllConsumersHadThem) {
  auto pool = RootPool::open(path_, options(true));
  std::vector<std::uint64_t> ids;
  auto stream = pool.events({.consumer = "mailer"});
  stream.acknowledge();
  for (std::uint64_t n = 0; n < 2000; ++n) {
    ids.push_back(step(pool, n));
    if (n % 500 == 499) pool.flush_archive();
  }
  (void)pool.backup();
  pool.flush_archive();
  const PruneReport kept = prune_backups(archive_, {});
  EXPECT_EQ("mailer", kept.held_by);
  expect_all(stream, 0, 2000, ids);
  stream.acknowledge();
  const PruneReport pruned = prune_backups(archive_, {});
  EXPECT_EQ("", pruned.held_by);
  EXPECT_GT(pruned.files, kept.files);
  auto start = pool.events({.after = EventPosition::start()});
  Event event;
  EXPECT_THROW((void)start.next(event, 1s), error);
}

TEST_P(Events, OutliveTheirPool) {
  std::optional<EventStream> stream;
  std::optional<Following> following;
  {
    auto pool = RootPool::open(path_, options(false));
    stream.emplace(pool.events());
    following.emplace(pool.follow({}, [](const Event&) { return true; }));
    (void)step(pool, 2);
  }
  Event event;
  int seen = 0;
  try {
    while (stream->next(event, 1s)) ++seen;
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(Code::closed, e.code()) << e.what();
  }
  EXPECT_EQ(2, seen) << "what it emitted before its end";
  EXPECT_TRUE(test::comes([&] { return following->status().code() == Code::closed; }));
}

std::string name_of(const testing::TestParamInfo<How>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Events,
                         testing::Values(How{"file", "file", "", Durability::durable},
                                         How{"file_async", "file", "", Durability::async},
                                         How{"memory", "emulated", "", Durability::durable},
                                         How{"memory_group", "emulated", "", Durability::group},
                                         How{"stm", "emulated", "shadow/stm", Durability::durable},
                                         How{"global_lock", "emulated", "shadow/global_lock",
                                             Durability::durable}),
                         name_of);

TEST(EventsElsewhere, AreUnsupported) {
  const std::string path = testing::TempDir() + "/events_undo_" + std::to_string(::getpid());
  Options o;
  o.engine = "undo";
  {
    auto pool = RootPool::open(path, o);
    EXPECT_EQ(Code::unsupported, pool.try_update([](tx& tx, Root&) { tx.emit("t", "x"); }).code());
    EXPECT_THROW((void)pool.events(), error);
    EXPECT_FALSE(pool.file().has_feature(pool::Feature::note_entries));
  }
  EXPECT_THROW((void)open_events(path), error);
  std::filesystem::remove(path);
}

TEST(Notes, AreReadAsTheyWereWritten) {
  log::RecordWriter record;
  record.configure(1, 1 << 20, 64);
  const std::string bytes(5000, 'b'), topic(255, 't');
  for (std::size_t n = 0; n < bytes.size(); n += 7) {
    record.reset();
    const log::Note note{std::string_view(topic).substr(0, n % 255 + 1),
                         std::string_view(bytes).substr(0, n), static_cast<std::uint16_t>(n), n};
    log::add_note(record, note);
    record.heap_op({1 << 20, 3, 0, true});
    unsigned entries = 0;
    ASSERT_TRUE(log::each_entry(record.payload(), record.payload_words(), [&](const auto& e) {
      if (entries++ != 0) return;
      const auto read = log::read_note(e);
      ASSERT_TRUE(read);
      EXPECT_EQ(note.topic, read->topic);
      EXPECT_EQ(note.bytes, read->bytes);
      EXPECT_EQ(note.schema, read->schema);
      EXPECT_EQ(note.unix_ns, read->unix_ns);
    }));
    ASSERT_EQ(2U, entries);
  }
  std::uint64_t words[] = {log::entry_key(log::EntryKind::note, 0, 3), 9, 0, 0};
  EXPECT_FALSE(log::read_note({log::EntryKind::note, 0, 3, words + 1}));
}

}  // namespace
}  // namespace perdure
