// SPDX-License-Identifier: BSD-3-Clause
//
// Pool::snapshot(): what a snapshot reads and for how long, what it leaves of transactions, what it
// refuses and what refuses it, on every engine that has snapshots; the others answer `unsupported`.
// tests/crash/snapshots_test.cpp has its interleavings, snapshots_threads_test.cpp free threads.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/container/table.hpp"
#include "perdure/engine/shadow/versions.hpp"
#include "perdure/perdure.hpp"
#include "tests/api/fork.hpp"
#include "tests/engine/stages.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"
#include "tests/support/comes.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;
using namespace std::chrono_literals;

struct Row {
  std::uint64_t id = 0, group = 0;
  std::string text;
  friend bool operator==(const Row&, const Row&) = default;
};
constexpr std::size_t lines = 4096;
struct Root {
  p<std::uint64_t> count;
  string text;
  map<std::uint64_t, std::string> sorted;
  hash_map<std::string, std::uint64_t> hashed;
  table<Row, key<&Row::id>, indexed<&Row::group>> rows;
  vector<std::uint64_t> numbers;
  std::array<p<std::uint64_t>, 8 * lines> line;
};
using TestPool = AnyPool<Root>;

template <class F>
void expect_code(Code code, F&& f) {
  try {
    f();
    ADD_FAILURE() << "expected " << name(code);
  } catch (const error& e) {
    EXPECT_EQ(code, e.code()) << e.what();
  }
}

class SnapshotsTest : public EngineTest {
 protected:
  [[nodiscard]] Options options() const {
    Options o;
    o.engine = GetParam().name;
    o.medium = "emulated";
    o.creation.max_size = 64 << 20;
    o.creation.log_size = 8 << 20;
    return o;
  }
  [[nodiscard]] TestPool open(const Options& o) const { return TestPool::open(path_, o); }
  [[nodiscard]] TestPool open() const { return open(options()); }
  Scratch scratch_;
  std::string path_ = scratch_.path();
};
std::vector<EngineInfo> with_snapshots() {
  return engines_that([](const EngineInfo& e) { return e.has_snapshots; });
}
ENGINE_SUITE(SnapshotsTest, with_snapshots);

template <class Pool>
void set(Pool& pool, std::uint64_t value) {
  pool.update([&](auto& tx, Root& r) { tx(r.count) = value; });
}
std::uint64_t count_of(const Snapshot<Root>& s) {
  return s.view([](auto& tx, const Root& r) { return tx(r.count); });
}

TEST_P(SnapshotsTest, ReadTheStateOfTheirId) {
  auto pool = open();
  set(pool, 1);
  const auto id = pool.update([](auto& tx, Root& r) { tx(r.count) = 2; }).id();
  const auto second = pool.snapshot();
  EXPECT_EQ(second.id(), id);
  set(pool, 3);
  auto third = pool.snapshot();
  const auto copy = third;
  set(pool, 4);
  EXPECT_EQ(pool.stats().snapshots, 2U);
  EXPECT_EQ(count_of(second), 2U);
  EXPECT_EQ(count_of(third), 3U);
  third = second;  // the copy keeps it open
  EXPECT_EQ(count_of(third), 2U);
  EXPECT_EQ(count_of(copy), 3U);
  EXPECT_EQ(copy.id(), id + 1);
  EXPECT_FALSE(copy.expired());
  EXPECT_EQ(count_of(pool.snapshot()), 4U);
}

TEST_P(SnapshotsTest, AreAlsoOfAnEmptyPoolAndOfOneForReading) {
  {
    auto pool = open();
    const auto empty = pool.snapshot();
    set(pool, 1);
    EXPECT_EQ(count_of(empty), 0U);
  }
  Options o = options();
  o.read_only = true;
  auto pool = open(o);
  const auto s = pool.snapshot(durable);
  EXPECT_EQ(count_of(s), 1U);
}

/// A state of all containers, read in full.
struct Contents {
  std::string text;
  std::map<std::uint64_t, std::string> sorted, ranged;
  std::map<std::string, std::uint64_t> hashed;
  std::map<std::uint64_t, Row> rows;
  std::size_t of_group_three = 0;
  std::vector<std::uint64_t> numbers;
  bool operator==(const Contents&) const = default;
};
template <class Tx>
Contents contents(Tx& tx, const Root& r) {
  Contents c;
  c.text = r.text.str(tx);
  r.sorted.for_each(tx, [&](std::uint64_t k, const std::string& v) { c.sorted[k] = v; });
  for (const auto [k, v] : r.sorted.range(tx, 100, 200)) c.ranged[k] = v;
  r.hashed.for_each(tx, [&](const std::string& k, std::uint64_t v) {
    c.hashed[k] = v;
    EXPECT_EQ(r.hashed.find(tx, k), v);
  });
  for (const Row row : r.rows.ordered<&Row::group>(tx)) c.rows[row.id] = row;
  for (const Row row : r.rows.by<&Row::group>(tx, 3)) c.of_group_three += row.id;
  for (std::size_t i = 0; i < r.numbers.size(tx); ++i) c.numbers.push_back(r.numbers.get(tx, i));
  return c;
}
template <class Pool>
void churn(Pool& pool, std::mt19937_64& random) {
  struct Oops {};
  try {
    pool.update([&](auto& tx, Root& r) {
      for (int i = 0; i < 4; ++i) {
        const std::uint64_t k = random() % 400;
        const std::string text(random() % 200, static_cast<char>('a' + random() % 26));
        if (random() % 3 == 0) {
          r.sorted.erase(tx, k);
          r.hashed.erase(tx, std::to_string(k));
          r.rows.erase(tx, k);
        } else {
          r.sorted.put(tx, k, text);
          r.hashed.put(tx, std::to_string(k), random());
          r.rows.put(tx, Row{k, k % 7, text});
        }
        r.text.assign(tx, text);
      }
      if (r.numbers.size(tx) > 500)
        r.numbers.clear(tx);
      else
        r.numbers.push_back(tx, random());
      if (random() % 8 == 0) throw Oops();
    });
  } catch (const Oops&) {}
}

template <class Pool>
void containers_stay(Pool& pool) {
  std::mt19937_64 random(1);
  std::map<std::size_t, std::pair<Snapshot<Root>, Contents>> open;
  for (std::size_t round = 0; round < 12 / scale + 3; ++round) {
    for (int i = 0; i < 150; ++i) churn(pool, random);
    Contents now = pool.view([](auto& tx, const Root& r) { return contents(tx, r); });
    open.emplace(round, std::pair(pool.snapshot(), std::move(now)));
    for (int i = 0; i < 150; ++i) churn(pool, random);
    if (round % 4 == 1) pool.checkpoint();
    for (const auto& [number, is] : open)
      EXPECT_TRUE(is.first.view([&, &was = is.second](auto& tx, const Root& r) {
        return contents(tx, r) == was;
      })) << number;
    if (open.size() > 3) open.erase(open.size() % 2 == 0 ? open.begin() : std::prev(open.end()));
  }
  open.clear();
  EXPECT_TRUE(pool.check().ok());
}
TEST_P(SnapshotsTest, HaveContainersThatWritersChange) {
  auto pool = open();
  containers_stay(pool);
}
TEST(SnapshotsOfACompiledEngine, HaveContainersThatWritersChange) {
  const Scratch scratch;
  Options o;
  o.medium = "emulated";
  o.creation.max_size = 64 << 20;
  auto pool = Pool<Root, engines<shadow>>::open(scratch.path(), o);
  containers_stay(pool);
}

// Pages are given back, grown into and checkpointed beneath a snapshot.
TEST_P(SnapshotsTest, OfAPoolThatMayBeLargerThanMemory) {
  Options o = options();
  o.max_resident = 256 << 10;
  auto pool = open(o);
  containers_stay(pool);
  EXPECT_GT(pool.stats().evictions, 0U);
}

TEST_P(SnapshotsTest, LeaveThreadsAloneForAsLongAsTheyAreRead) {
  auto pool = open();
  std::atomic<bool> stop{false};
  set(pool, 1);
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop; ++i)
      pool.update([&](auto& tx, Root& r) {
        tx(r.count) = i;
        tx(r.line[i % lines * 8]) = i;
      });
  });
  const auto commits = [&] { return pool.stats().commits; };
  ASSERT_TRUE(comes([&] { return commits() > 10'000 / scale; }));
  const auto s = pool.snapshot();
  const Stats before = pool.stats();
  int runs = 0;
  const std::uint64_t moved = s.view([&](auto& tx, const Root& r) {
    ++runs;
    const std::uint64_t first = tx(r.count);
    std::uint64_t wrong = 0;
    const auto end = std::chrono::steady_clock::now() + 2s;
    while (std::chrono::steady_clock::now() < end) {
      for (std::size_t i = 0; i < lines; i += 64) wrong += tx(r.line[i * 8]) > first ? 1U : 0U;
      wrong += tx(r.count) != first ? 1U : 0U;
      std::this_thread::sleep_for(1ms);
    }
    return wrong;
  });
  const Stats after = pool.stats();
  EXPECT_EQ(moved, 0U);
  EXPECT_EQ(runs, 1);
  EXPECT_GT(after.commits, before.commits + 1000 / scale);
  EXPECT_EQ(after.bias_revocations, before.bias_revocations);
  EXPECT_EQ(after.reads, before.reads);
  stop = true;
  writer.join();
}

// An update that begins while a snapshot is being opened draws its id before the snapshot takes its
// own, and goes on only later.
thread_local int role = 0;
void meet() {
  constexpr int opener = 1, writer = 2, updates_have_ended = 1, has_id = 4;
  if (role == opener && ++points == updates_have_ended) stage = 1, until(2);
  if (role == writer && ++points == has_id) stage = 2, until(3);
}
/// Whether the writer is rolled back instead.
void wait_for_a_writer(TestPool& pool, bool fails) {
  struct Oops {};
  set(pool, 1);
  stage = 0;
  engine::shadow::snapshot_point = &meet;
  std::uint64_t id = pool.stats().last_id;
  std::thread writer([&] {
    until(1);
    role = 2;
    try {
      id = pool.update([&](auto& tx, Root& r) {
                 tx(r.count) = 2;
                 if (fails) throw Oops();
               })
               .id();
    } catch (const Oops&) {}
  });
  std::uint64_t found = 0, seen = 0;
  std::atomic<bool> open{false};
  std::thread opener([&] {
    role = 1;
    const auto s = pool.snapshot();
    open = true;
    seen = s.id();
    found = count_of(s);
  });
  until(2);
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(open);
  stage = 3;
  writer.join();
  opener.join();
  engine::shadow::snapshot_point = nullptr;
  EXPECT_EQ(seen, id);
  EXPECT_EQ(found, fails ? 1U : 2U);
}
TEST_P(SnapshotsTest, WaitForTransactionsThatHaveTheirIds) {
  auto pool = open();
  wait_for_a_writer(pool, false);
}
// Its stamp, of a clock before the snapshot's, would else be set beneath the snapshot's readers.
TEST_P(SnapshotsTest, WaitForTransactionsThatAreBeingRolledBack) {
  auto pool = open();
  wait_for_a_writer(pool, true);
}

TEST_P(SnapshotsTest, AreOpenedOutsideTransactionsAndReadAnywhere) {
  auto pool = open();
  set(pool, 1);
  const auto s = pool.snapshot();
  pool.update([&](auto& tx, Root& r) {
    tx(r.count) = 2;
    EXPECT_EQ(count_of(s), 1U);
    pool.update([&](auto& inner, Root& same) {
      inner(same.count) = 3;
      EXPECT_EQ(count_of(s), 1U);
    });
    tx(r.count) += 1;
    expect_code(Code::invalid, [&] { (void)pool.snapshot(); });
  });
  pool.view([&](auto& tx, const Root& r) {
    EXPECT_EQ(tx(r.count), 4U);
    EXPECT_EQ(count_of(s), 1U);
    expect_code(Code::invalid, [&] { (void)pool.snapshot(); });
  });
  // The last handle may end in a transaction, too.
  std::optional<Snapshot<Root>> last(pool.snapshot());
  pool.update([&](auto& tx, Root& r) {
    tx(r.count) = 5;
    last.reset();
  });
  EXPECT_EQ(count_of(pool.snapshot()), 5U);
  EXPECT_EQ(count_of(s), 1U);
}

TEST_P(SnapshotsTest, KeepThePoolFromBeingClosed) {
  auto pool = open();
  set(pool, 1);
  {
    const auto s = pool.snapshot();
    expect_code(Code::busy, [&] { (void)pool.close(); });
    set(pool, 2);
    EXPECT_EQ(count_of(s), 1U);
  }
  EXPECT_TRUE(pool.close().clean);
  expect_code(Code::closed, [&] { (void)pool.snapshot(); });
}

TEST_P(SnapshotsTest, ExpireWithThePoolWhichWaitsForTheirReaders) {
  std::optional<TestPool> pool(open());
  set(*pool, 1);
  const auto s = pool->snapshot();
  std::atomic<bool> inside{false}, gone{false}, late{false};
  std::atomic<int> code{0};
  std::thread reader([&] {
    // Looks while the lambda is left, which the pool's destructor waits for.
    struct Leaving {
      const std::atomic<bool>& gone;
      std::atomic<bool>& late;
      ~Leaving() { late = gone.load(); }
    };
    try {
      s.view([&](auto& tx, const Root& r) {
        const Leaving leaving{gone, late};
        inside = true;
        while (tx(r.count) == 1) std::this_thread::sleep_for(1ms);
      });
    } catch (const error& e) {
      code = static_cast<int>(e.code());
    }
  });
  ASSERT_TRUE(comes([&] { return inside.load(); }));
  pool.reset();
  gone = true;
  reader.join();
  EXPECT_EQ(code, static_cast<int>(Code::closed));
  EXPECT_FALSE(late);
  EXPECT_TRUE(s.expired());
  expect_code(Code::closed, [&] { (void)count_of(s); });
  auto again = open();
  EXPECT_TRUE(again.stats().recovery.was_clean);
}

TEST_P(SnapshotsTest, ExpireTheOldestFirstWhereMemoryEnds) {
  Options o = options();
  o.engine_options = ShadowOptions{.snapshot_memory = 512 << 10};
  auto pool = open(o);
  set(pool, 1);
  const auto fill = [&](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      pool.update([&](auto& tx, Root& r) { tx(r.line[i * 8]) += 1; });
  };
  const auto old = pool.snapshot();
  set(pool, 2);
  fill(lines / 2);
  const auto young = pool.snapshot();
  set(pool, 3);
  EXPECT_EQ(count_of(old), 1U);
  EXPECT_GT(pool.stats().snapshot_bytes, lines / 2 * 64);
  fill(lines);
  EXPECT_TRUE(old.expired());
  EXPECT_EQ(pool.stats().snapshots_expired, 1U);
  expect_code(Code::expired, [&] { (void)count_of(old); });
  EXPECT_EQ(count_of(young), 2U);
  EXPECT_LE(pool.stats().snapshot_bytes, 512U << 10);
  fill(lines);  // saved already
  EXPECT_EQ(count_of(young), 2U);
  // One that needs more than there is expires, too. Transactions go on.
  {
    auto all = pool.snapshot();
    for (int i = 0; i < 8; ++i) {
      all = pool.snapshot();
      fill(lines);
    }
  }
  EXPECT_TRUE(young.expired());
  EXPECT_EQ(pool.view([](auto& tx, const Root& r) { return tx(r.count); }), 3U);
}

TEST_P(SnapshotsTest, ShareNothingWithTheChildOfAFork) {
  if (no_fork_beside_threads != nullptr) GTEST_SKIP() << no_fork_beside_threads;
  auto pool = open();
  set(pool, 1);
  std::optional<Snapshot<Root>> s(pool.snapshot());
  const pid_t child = ::fork();
  if (child == 0) {
    int failed = 1;
    try {
      (void)count_of(*s);
    } catch (const error& e) {
      failed = e.code() == Code::closed ? 0 : 2;
    }
    s.reset();
    ::_exit(failed);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  set(pool, 2);
  EXPECT_EQ(count_of(*s), 1U);
}

TEST_P(SnapshotsTest, OfTransactionsThatAreDurable) {
  Shape shape;
  shape.durability = async;
  shape.like_a_file = true;
  shape.data_bytes = 32 * pool::chunk_bytes;
  auto rig = open_rig<Root>(GetParam(), shape);
  for (std::uint64_t i = 1; i < 50; ++i) set(rig.pool, i);
  const auto s = rig.pool.snapshot(durable);
  EXPECT_GE(rig.pool.durable_id(), s.id());
  EXPECT_EQ(count_of(s), 49U);
}

TEST_P(SnapshotsTest, KeepAPoolFromBeingTrimmed) {
  Shape shape;
  shape.data_bytes = 32 * pool::chunk_bytes;
  shape.ring_bytes = 1 << 20;
  auto rig = open_rig<Root>(GetParam(), shape);
  rig.pool.update([](auto& tx, Root& r) { r.text.assign(tx, std::string(100'000, 'x')); });
  {
    const auto s = rig.pool.snapshot();
    rig.pool.update([](auto& tx, Root& r) { r.text.assign(tx, "y"); });
    expect_code(Code::busy, [&] {
      for (Trimmed t{0, true}; t.more;) t = rig.pool.trim();
    });
    EXPECT_EQ(s.view([](auto& tx, const Root& r) { return r.text.str(tx); }),
              std::string(100'000, 'x'));
  }
  EXPECT_GT(rig.pool.trim().bytes, 0U);
}

TEST_P(SnapshotsTest, AreKeptByTheirReaders) {
  auto pool = open();
  set(pool, 1);
  std::optional<Snapshot<Root>> s(pool.snapshot());
  EXPECT_EQ(s->view([&](auto& tx, const Root& r) {
    s.reset();
    set(pool, 2);
    return tx(r.count);
  }),
            1U);
  EXPECT_EQ(pool.stats().snapshots, 0U);
}

// An update that has saved lines may save more after the last handle has gone.
TEST_P(SnapshotsTest, LeaveTheirMemoryToTheTransactionsThatUseIt) {
  auto pool = open();
  std::optional<Snapshot<Root>> s(pool.snapshot());
  pool.update([&](auto& tx, Root& r) {
    tx(r.line[0]) = 1;
    s.reset();
    EXPECT_EQ(pool.stats().snapshots, 0U);
    EXPECT_GT(pool.stats().snapshot_bytes, 0U);
    for (std::size_t i = 1; i < 100; ++i) tx(r.line[i * 8]) = 1;
  });
  s.emplace(pool.snapshot());
  pool.update([&](auto& tx, Root& r) { tx(r.line[0]) = 2; });
  EXPECT_EQ(s->view([](auto& tx, const Root& r) { return tx(r.line[0]); }), 1U);
  s.reset();
  // The pool's own thread may be copying when a handle ends.
  EXPECT_TRUE(comes([&] {
    (void)pool.snapshot();
    return pool.stats().snapshot_bytes == 0;
  }));
}

// A transaction leaves out a line of which its snapshots have what they need. When these are gone,
// what was saved of the line may be used again, and a later store finds nothing of it.
TEST_P(SnapshotsTest, HaveNothingOfATransactionThatOutlivesAnOlderSnapshot) {
  using engine::shadow::Versions;
  Options o = options();
  o.engine_options = ShadowOptions{.snapshot_memory = 64 << 10};
  static_assert((64 << 10) / Versions::chunk_bytes == 4);
  auto pool = open(o);
  const auto store = [](auto& tx, Root& r, std::size_t from, std::size_t to, std::uint64_t value) {
    for (std::size_t i = from; i < to; ++i) tx(r.line[8 * i]) = value;
  };
  std::optional<Snapshot<Root>> old(pool.snapshot());
  // Line 0 is in the first chunk, which this thread then leaves for the second one.
  pool.update([&](auto& tx, Root& r) { store(tx, r, 0, 1, 1); });
  constexpr std::size_t filled = Versions::chunk_entries + 10;
  pool.update([&](auto& tx, Root& r) { store(tx, r, 1, filled, 1); });
  std::optional<Snapshot<Root>> made;
  std::thread opener;
  struct Oops {};
  EXPECT_THROW(pool.update([&](auto& tx, Root& r) {
    store(tx, r, 0, 1, 100);
    old.reset();
    opener = std::thread([&] { made.emplace(pool.snapshot()); });
    EXPECT_TRUE(comes([&] { return pool.stats().snapshots == 1; }));
    // The second, third and fourth chunk, and one entry of the first one.
    store(tx, r, filled, filled + 3 * Versions::chunk_entries - 9, 5);
    store(tx, r, 0, 1, 200);
    throw Oops();
  }),
               Oops);
  opener.join();
  ASSERT_FALSE(made->expired());
  EXPECT_EQ(made->view([](auto& tx, const Root& r) { return tx(r.line[0]); }), 1U);
}

// A view may last as long as it likes.
TEST_P(SnapshotsTest, AreOpenedBesideLongViews) {
  auto pool = open();
  set(pool, 1);
  // A thread's first view begins in another way than its later ones.
  for (const int last : {1, 2}) {
    std::mutex mutex;
    std::unique_lock held(mutex);
    std::atomic<int> inside{0};
    std::thread viewer([&] {
      for (int i = 1; i <= last; ++i)
        pool.view([&](auto& tx, const Root& r) {
          EXPECT_EQ(tx(r.count), 1U);
          inside = i;
          if (i < last) return;
          const std::lock_guard wait(mutex);
        });
    });
    EXPECT_TRUE(comes([&] { return inside == last; }));
    EXPECT_EQ(count_of(pool.snapshot()), 1U);
    held.unlock();
    viewer.join();
  }
}

// The thread that ends the last handle may hold what a transaction waits for.
TEST_P(SnapshotsTest, AreClosedWithoutAWait) {
  auto pool = open();
  set(pool, 1);
  std::optional<Snapshot<Root>> s(pool.snapshot());
  std::mutex mutex;
  std::unique_lock held(mutex);
  std::atomic<bool> inside{false};
  std::thread viewer([&] {
    pool.view([&](auto&, const Root&) {
      inside = true;
      const std::lock_guard wait(mutex);
    });
  });
  EXPECT_TRUE(comes([&] { return inside.load(); }));
  s.reset();
  held.unlock();
  viewer.join();
  EXPECT_EQ(count_of(pool.snapshot()), 1U);
}

TEST_P(SnapshotsTest, ThrowWhatTheirLambdaThrows) {
  auto pool = open();
  struct Oops {};
  const auto s = pool.snapshot();
  EXPECT_THROW(s.view([](auto&, const Root&) { throw Oops(); }), Oops);
  EXPECT_EQ(count_of(s), 0U);
}

TEST(SnapshotMemory, IsAtLeastAFewChunks) {
  EXPECT_EQ(ShadowOptions{.snapshot_memory = 1000}.check("x").code(), Code::invalid);
}

class OtherEngines : public EngineTest {};
std::vector<EngineInfo> without_snapshots() {
  return engines_that([](const EngineInfo& e) {
    return e.name != "shadow" && e.name != "shadow/stm" && e.name != "shadow/global_lock";
  });
}
ENGINE_SUITE(OtherEngines, without_snapshots);
struct Small {
  p<std::uint64_t> count;
};
TEST_P(OtherEngines, SayByNameThatTheyHaveNone) {
  auto rig = open_rig<Small>(GetParam(), Shape());
  try {
    (void)rig.pool.snapshot();
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::unsupported);
    EXPECT_NE(std::string(e.what()).find("'" + std::string(GetParam().name) + "'"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace perdure::test
