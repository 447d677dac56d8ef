// SPDX-License-Identifier: BSD-3-Clause
//
// The costs that design and README promise, measured exactly with counters: fences per durable
// commit, log bytes per stored word, one fence for all threads that wait together, no write to the
// medium by a transaction that only reads, and an opening that reads the log and not the whole
// pool.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <latch>

#include "perdure/pool/heap.hpp"
#include "tests/engine/suite.hpp"
#include "tests/engine/watch.hpp"

namespace perdure::test {
namespace {

struct Root {
  std::array<p<std::uint64_t>, 2048> word;
  std::array<ptr<std::uint64_t>, 8> slot;
};

struct Watched {
  WatchMedium* medium;
  AnyPool<Root> pool;

  struct Cost {
    std::uint64_t fences, lines;
    friend bool operator==(const Cost&, const Cost&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Cost& c) {
      return out << c.fences << " fences, " << c.lines << " lines";
    }
  };
  /// The cost of one call to the calling thread.
  template <class F>
  Cost cost(F&& f) {
    const std::uint64_t fences = medium->my_fences(), lines = medium->my_streamed_lines();
    f();
    return {medium->my_fences() - fences, medium->my_streamed_lines() - lines};
  }
};

Watched open_watched(const EngineInfo& e, const Shape& shape) {
  auto made = std::make_unique<WatchMedium>(medium::RecordingMedium::make(shape.medium()).value());
  WatchMedium* const raw = made.get();
  return {raw,
          AnyPool<Root>::try_open_on("recording", shape.options(e), std::move(made), true).value()};
}

class Counts : public EngineTest {
 public:
  static Shape large() {
    Shape shape;
    shape.ring_bytes = 4 << 20;  // no checkpoint while costs are measured
    return shape;
  }
};
// The others' costs: rewind_test.cpp, bppm_test.cpp, softwrap_test.cpp, dudetm_test.cpp (combined).
std::vector<EngineInfo> of_one_record() {
  return engines_that([](const EngineInfo& e) {
    return is_durable(e) && !is_rewind(e) && !is_blurred(e) && !is_softwrap(e) &&
           !e.name.starts_with("dudetm-combined");
  });
}
ENGINE_SUITE(Counts, of_one_record);

/// Lines of a record of `payload` words: three of header, whole lines.
constexpr std::uint64_t lines_of(std::uint64_t payload) { return ((3 + payload) * 8 + 63) / 64; }
/// Words of an entry of n values: a key, the values, even.
constexpr std::uint64_t entry(std::uint64_t n) { return (n + 2) / 2 * 2; }

TEST_P(Counts, FencesAndLogBytesOfADurableCommit) {
  auto rig = open_watched(GetParam(), this->large());
  using Cost = Watched::Cost;
  auto& pool = rig.pool;
  // A record of its own: 16 bytes per word and a header of 24 (and an end mark of 16 if one record
  // may contain several transactions).
  const std::uint64_t mark = is_dudetm(GetParam()) && !is_durable_when_seen(GetParam()) ? 2 : 0;
  // undo: the line's old words in a record of two lines; the word alone, in one line, if the caller
  // isolates.
  const std::uint64_t lines_before = isolates(GetParam()) ? 2 : 1;
  const auto expected = [&](std::uint64_t payload, std::uint64_t lines_changed,
                            std::uint64_t heap_ops) {
    if (is_undo(GetParam()))
      return Cost{lines_changed + 2 + (heap_ops != 0 ? 1 : 0),
                  lines_changed * lines_before + lines_of(heap_ops * 2)};
    else
      return Cost{1, lines_of(payload + heap_ops * 2 + mark)};
  };
  for (const std::uint64_t n : {1, 2, 3, 5, 8, 64, 200, 1000}) {
    // One word in each of n lines (undo: a record and a fence for each).
    EXPECT_EQ(expected(2 * n, n <= 256 ? n : 256, 0), rig.cost([&] {
      pool.update([&](auto& tx, Root& r) {
        for (std::uint64_t i = 0; i < (n <= 256 ? n : 256); ++i) tx(r.word[i * 8]) = n + i;
        // Stored again: redo logs it again, undo does not.
        for (std::uint64_t i = 256; i < n; ++i) tx(r.word[(i - 256) % 256 * 8]) = i;
      });
    })) << n
        << " words";
  }
  for (const std::uint64_t n : {1, 2, 7, 8, 40, 255, 256}) {  // bulk: one entry
    // undo logs the lines that a call changes; if the caller isolates, the words, in the same
    // records.
    const std::uint64_t lines = (n + 7) / 8;
    Cost want = expected(entry(n), lines, 0);
    if (is_undo(GetParam()) && !isolates(GetParam())) {
      want.lines = lines_of(0);
      for (std::uint64_t l = 0; l < lines; ++l)
        want.lines += lines_of(entry(std::min<std::uint64_t>(8, n - l * 8)));
    }
    EXPECT_EQ(want, rig.cost([&] {
      pool.update([&](auto& tx, Root& r) {
        const std::vector<std::uint64_t> values(n, n);
        tx.write_bytes(&r.word[512], values.data(), n * 8);
      });
    })) << n
        << " words at once";
  }
  // 600 words, more than the transaction's buffer of 256: one entry for each 256, and one for 88.
  if (!is_undo(GetParam())) {
    EXPECT_EQ(expected(entry(256) * 2 + entry(88), 0, 0), rig.cost([&] {
      pool.update([&](auto& tx, Root& r) {
        const std::vector<std::uint64_t> values(600, 1);
        tx.write_bytes(&r.word[512], values.data(), 4800);
      });
    }));
  }
  // A byte costs its word; 12 bytes across two words cost two.
  EXPECT_EQ(expected(2, 1, 0), rig.cost([&] {
    pool.update([&](auto& tx, Root& r) {
      tx.write_bytes(reinterpret_cast<char*>(&r.word[0]) + 3, "x", 1);
    });
  }));
  if (!is_undo(GetParam()) || isolates(GetParam())) {
    EXPECT_EQ(expected(4, 1, 0), rig.cost([&] {
      pool.update([&](auto& tx, Root& r) {
        tx.write_bytes(reinterpret_cast<char*>(&r.word[0]) + 2, "0123456789ab", 12);
      });
    }));
  }
  // Blocks: 16 bytes per operation; the first block of a size makes its span.
  pool.update(
      [&](auto& tx, Root& r) { tx(r.slot[0]) = reinterpret_cast<std::uint64_t*>(tx.alloc(48)); });
  EXPECT_EQ(expected(2, 1, 1), rig.cost([&] {
    pool.update(
        [&](auto& tx, Root& r) { tx(r.slot[1]) = reinterpret_cast<std::uint64_t*>(tx.alloc(48)); });
  }));
  EXPECT_EQ(expected(4, isolates(GetParam()) ? 1 : 2, 2), rig.cost([&] {
    pool.update([&](auto& tx, Root& r) {
      for (std::size_t s = 0; s < 2; ++s) {
        tx.free(static_cast<std::uint64_t*>(tx(r.slot[s])));
        tx(r.slot[s]) = nullptr;
      }
    });
  }));
  EXPECT_EQ((Cost{0, 0}), rig.cost([&] {
    EXPECT_THROW(pool.update([&](auto& tx, Root&) { perdure::abort(tx); }), aborted);
  }));
}

TEST_P(Counts, BytesTheStatsTell) {
  if (is_shadow(GetParam())) {
    auto rig = open_watched(GetParam(), this->large());
    std::uint64_t expected = rig.pool.stats().log_bytes;
    for (const std::uint64_t n : {1, 6, 13, 100}) {
      rig.pool.update([&](auto& tx, Root& r) {
        for (std::uint64_t i = 0; i < n; ++i) tx(r.word[i]) = i;
      });
      expected += lines_of(2 * n) * 64;
      EXPECT_EQ(expected, rig.pool.stats().log_bytes);
    }
  }
}

// The order of a file on a medium that counts: one sync per commit and nothing else; the log's
// grain is a block.
TEST_P(Counts, SyncsOfADurableCommitOnAFile) {
  if (!is_undo(GetParam())) {
    Shape shape = this->large();
    shape.like_a_file = true;
    auto rig = open_watched(GetParam(), shape);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ((Watched::Cost{1, 64}),
                rig.cost([&] { rig.pool.update([&](auto& tx, Root& r) { tx(r.word[0]) = 1; }); }));
  }
}

TEST_P(Counts, OneFenceAcknowledgesSixteenWhoWait) {
  if (!is_durable_when_seen(GetParam()) && !is_seen_before_its_own_fence(GetParam())) {
    Shape shape = this->large();
    shape.durability = group;
    auto made = medium::RecordingMedium::make(shape.medium()).value();
    auto* const medium = made.get();
    auto pool =
        AnyPool<Root>::try_open_on("recording", shape.options(GetParam()), std::move(made), true)
            .value();
    pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
    std::atomic<bool> hold{true};
    std::atomic<int> in_fence{0}, appended{0};
    medium->set_fence_hooks(
        [&] {
          ++in_fence;
          while (hold) std::this_thread::yield();
        },
        {});
    const auto appends = [&] {
      std::uint64_t n = 0;
      for (const auto& e : medium->events())
        n += e.kind == medium::Event::Kind::stream && e.offset >= pool::first_ring &&
                     e.offset < medium->log_bytes()
                 ? 1
                 : 0;
      return n;
    };
    const std::uint64_t before = appends();
    std::vector<std::thread> threads;
    threads.emplace_back([&] { pool.update([](auto& tx, Root& r) { tx(r.word[1]) = 1; }); });
    while (in_fence == 0) std::this_thread::yield();
    for (std::size_t t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        pool.update([&](auto& tx, Root& r) { tx(r.word[8 * t + 64]) = t; });
        ++appended;
      });
    while (pool.stats().commits < 18) std::this_thread::yield();
    EXPECT_EQ(0, appended) << "acknowledged before its fence";
    hold = false;
    for (auto& t : threads) t.join();
    medium->set_fence_hooks({}, {});
    EXPECT_EQ(before + 2, appends()) << "one for the first, exactly one for the sixteen";
    if (has_timestamps(GetParam()))
      EXPECT_GE(pool.durable_id(), pool.stats().last_id);
    else
      EXPECT_EQ(18U, pool.durable_id());
  }
}

class Reading : public EngineTest {};
ENGINE_SUITE(Reading, all_of_them);

// LAW-8.
TEST_P(Reading, WritesNothingToTheMedium) {
  for (const Durability d : {durable, async}) {
    Shape shape;
    shape.durability = d;
    auto rig = open_rig<Root>(GetParam(), shape);
    for (std::uint64_t i = 0; i < 40; ++i)
      rig.pool.update([&](auto& tx, Root& r) { tx(r.word[i]) = i; });
    rig.pool.checkpoint();  // what an engine has not yet written to the data region
    auto before = rig.medium->counters();
    for (int round = 0; round < 100; ++round) {
      // The engine's own thread may still be writing: wait until it has written nothing for 20 ms.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const auto now = rig.medium->counters();
      const bool quiet = (now - before).writes() == 0;
      before = now;
      if (quiet) break;
    }
    const auto image = rig.medium->current_image();
    for (unsigned i = 0; i < 3000 / scale; ++i) {
      rig.pool.view([](auto& tx, const Root& r) { EXPECT_EQ(39U, tx(r.word[39])); });
      rig.pool.view(durable, [](auto& tx, const Root& r) { (void)tx(r.word[1]); });
      rig.pool.update(
          [](auto& tx, Root& r) { EXPECT_EQ(7U, static_cast<std::uint64_t>(tx(r.word[7]))); });
    }
    in_threads(2, [&](int) {
      for (unsigned i = 0; i < 1500 / scale; ++i)
        rig.pool.view([](auto& tx, const Root& r) { (void)tx(r.word[2]); });
    });
    EXPECT_EQ(0U, (rig.medium->counters() - before).writes());
    EXPECT_TRUE(image == rig.medium->current_image());
  }
}

// --- opening -------------------------------------------------------------------------------------

struct Opening {
  long faults = 0;
  std::uint64_t records = 0;
};

class OpeningCost : public EngineTest {
 public:
  static Options options(std::uint64_t bytes) {
    Options o;
    o.engine = GetParam().name;
    o.isolation = GetParam().isolation;
    o.medium = "file";
    o.creation.log_size = 4 << 20;
    o.creation.initial_size = bytes;
    o.creation.max_size = 4ULL << 30;
    return o;
  }
  /// REWIND syncs the file dozens of times in each step.
  static std::uint64_t steps() { return 200 / heavy(GetParam()); }
  /// Makes a pool of that size, leaves records in its log and is killed; then a child opens it and
  /// counts the page faults of the opening thread: the engine's own threads start meanwhile, and
  /// their stacks are not part of the cost.
  static Opening measure(const std::string& path, std::uint64_t bytes) {
    const pid_t writer = ::fork();
    if (writer == 0) {
      auto pool = AnyPool<Root>::open(path, options(bytes));
      for (std::uint64_t i = 0; i < steps(); ++i)
        pool.update([&](auto& tx, Root& r) { tx(r.word[i]) = i; });
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(writer, &status, 0);
    EXPECT_EQ(0, status);
    int pipe[2];
    if (::pipe(pipe) != 0) std::abort();
    const pid_t reader = ::fork();
    if (reader == 0) {
      rusage before{}, after{};
      ::getrusage(RUSAGE_THREAD, &before);
      auto pool = AnyPool<Root>::open(path, options(bytes));
      ::getrusage(RUSAGE_THREAD, &after);
      Opening seen{after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt,
                   pool.stats().recovery.records};
      const std::uint64_t last = steps() - 1;
      const bool right =
          pool.view([&](auto& tx, const Root& r) { return tx(r.word[last]); }) == last;
      (void)!::write(pipe[1], &seen, sizeof seen);
      ::_exit(right ? 0 : 1);
    }
    ::waitpid(reader, &status, 0);
    EXPECT_EQ(0, status);
    Opening seen;
    EXPECT_EQ(static_cast<ssize_t>(sizeof seen), ::read(pipe[0], &seen, sizeof seen));
    ::close(pipe[0]);
    ::close(pipe[1]);
    return seen;
  }
};
std::vector<EngineInfo> of_each_family() {
  return engines_that([](const EngineInfo& e) { return is_durable(e) && e.name == e.family; });
}
ENGINE_SUITE(OpeningCost, of_each_family);

TEST_P(OpeningCost, GrowsWithTheLogNotThePool) {
  std::string folder = ::testing::TempDir() + "perdure-opening-XXXXXX";
  ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
  const Opening small = this->measure(folder + "/small", 1 << 20);
  const Opening large = this->measure(folder + "/large", 1 << 30);
  std::filesystem::remove_all(folder);
  if (is_shadow(GetParam())) {  // the others truncate their logs all the time
    EXPECT_EQ(small.records, large.records);
    EXPECT_GT(small.records, 100U) << "there was nothing to recover";
  }
  // Sanitizers touch pages of their own at each allocation: the longer the program runs, the more,
  // and not the same number for both.
  if (scale == 1) {
    EXPECT_LT(large.faults, small.faults + 64)
        << "pages touched: a pool a thousand times as large must not cost more";
  }
}

}  // namespace
}  // namespace perdure::test
