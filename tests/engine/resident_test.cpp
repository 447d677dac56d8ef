// SPDX-License-Identifier: BSD-3-Clause
//
// Options::max_resident: what a pool's pages take of DRAM stays near the limit, measured in
// /proc/self/smaps; nothing is lost by giving pages back, beside stores, frees and checkpoints of
// other threads; a pool that has nothing to do comes to rest; engines that can't keep to it refuse.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <latch>
#include <thread>

#include "perdure/container/hash_map.hpp"
#include "perdure/engine/shadow/resident.hpp"
#include "testing/faulty_medium.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;

constexpr std::uint64_t page = 4096, page_words = page / 8;
constexpr std::uint64_t limit = 1 << 20, pages = 4 * limit / page;

struct Root {
  ptr<p<std::uint64_t>> words;  // pages of them
  hash_map<std::uint64_t, std::uint64_t> map;
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (auto* const block = tx.read(words)) f(block);
    map.each_block(tx, f);
  }
};
using TestPool = AnyPool<Root>;

/// Bytes of the pool's mapping that are this process's own.
std::uint64_t own_bytes(TestPool& pool) {
  const std::uint64_t base = pool.header().base, end = base + pool.header().max_data_bytes;
  std::ifstream maps("/proc/self/smaps");
  std::uint64_t sum = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long from = 0, to = 0, kib = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2)
      inside = from >= base && to <= end;
    else if (inside && std::sscanf(line.c_str(), "Anonymous: %llu kB", &kib) == 1)
      sum += kib * 1024;
  }
  return sum;
}

class ResidentTest : public EngineTest {
 protected:
  [[nodiscard]] static Options options(std::uint64_t resident = limit) {
    Options o;
    o.engine = GetParam().name;
    o.isolation = GetParam().isolation;
    o.medium = "emulated";
    o.creation.max_size = 64 << 20;
    o.creation.log_size = 4 << 20;
    o.max_resident = resident;
    return o;
  }
  [[nodiscard]] static TestPool make(const std::string& path, const Options& o) {
    auto pool = TestPool::open(path, o);
    pool.update([](auto& tx, Root& r) {
      tx(r.words) = static_cast<p<std::uint64_t>*>(static_cast<void*>(tx.alloc(pages * page)));
    });
    return pool;
  }
  /// Adds 1 to a word of page n, in `model` too.
  static void add(TestPool& pool, std::vector<std::uint64_t>& model, std::uint64_t n) {
    pool.update([n](auto& tx, Root& r) {
      auto& word = tx.read(r.words)[n * page_words + n % page_words];
      tx(word) = tx.read(word) + 1;
    });
    ++model[n];
  }
  /// The pages that differ from the model.
  static std::uint64_t wrong(TestPool& pool, const std::vector<std::uint64_t>& model) {
    return pool.view([&](auto& tx, const Root& r) {
      std::uint64_t count = 0;
      for (std::uint64_t n = 0; n < pages; ++n)
        count += tx.read(tx.read(r.words)[n * page_words + n % page_words]) != model[n] ? 1 : 0;
      return count;
    });
  }
  Scratch scratch_;
  std::string path_ = scratch_.path();
};

std::vector<EngineInfo> limiting() {
  return engines_that([](const EngineInfo& e) { return e.limits_resident; });
}
ENGINE_SUITE(ResidentTest, limiting);

TEST_P(ResidentTest, PagesOfAPoolFourTimesTheLimitStayBelowIt) {
  std::vector<std::uint64_t> model(pages);
  std::mt19937_64 random(1);
  auto pool = make(path_, options());
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 200; ++i) add(pool, model, random() % pages);
    const auto stats = pool.stats();
    EXPECT_LE(own_bytes(pool), limit + 16 * page);
    // RESIDENT-3: what is not counted yet are the heap's own pages, until a checkpoint.
    EXPECT_LE(own_bytes(pool), (stats.shadow_pages + 16) * page);
  }
  EXPECT_GT(pool.stats().evictions, 2 * pages);
  EXPECT_EQ(0U, wrong(pool, model));
  pool.close();
}

TEST_P(ResidentTest, WithoutALimitAllPagesStay) {
  std::vector<std::uint64_t> model(pages);
  auto pool = make(path_, options(0));
  for (std::uint64_t n = 0; n < pages; ++n) add(pool, model, n);
  EXPECT_GE(own_bytes(pool), pages * page);
  EXPECT_EQ(0U, pool.stats().shadow_pages);
  EXPECT_EQ(0U, pool.stats().evictions);
}

TEST_P(ResidentTest, APoolThatWasNotClosedHasEverything) {
  std::vector<std::uint64_t> model(pages);
  std::mt19937_64 random(2);
  for (int session = 0; session < 3; ++session) {
    auto pool = session == 0 ? make(path_, options()) : TestPool::open(path_, options());
    for (int i = 0; i < 3000; ++i) add(pool, model, random() % pages);
    EXPECT_EQ(0U, wrong(pool, model));
  }
  auto pool = TestPool::open(path_, options());
  EXPECT_EQ(0U, wrong(pool, model));
}

// Threads store to pages of their own and to one map, whose nodes they allocate and free, while
// each of them gives pages back.
TEST_P(ResidentTest, ThreadsLoseNothing) {
  if (GetParam().isolation != Isolation::full) GTEST_SKIP() << "the caller isolates";
  constexpr std::size_t threads = 3;
  const std::uint64_t each = 4000 / scale;
  {
    auto pool = make(path_, options());
    std::vector<std::uint64_t> model(pages);
    std::atomic<std::uint64_t> in_map{0};
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        std::mt19937_64 random(t);
        for (std::uint64_t i = 0; i < each; ++i) {
          add(pool, model, random() % (pages / threads) * threads + t);
          const std::uint64_t key = random() % 5000;
          const bool grew = pool.update([key](auto& tx, Root& r) {
                                  if (r.map.erase(tx, key)) return false;
                                  r.map.put(tx, key, key);
                                  return true;
                                })
                                .value();
          if (grew)
            ++in_map;
          else
            --in_map;
        }
      });
    for (auto& w : workers) w.join();
    EXPECT_GT(pool.stats().evictions, 100U);
    EXPECT_EQ(0U, wrong(pool, model));
    EXPECT_EQ(in_map.load(), pool.view([](auto& tx, const Root& r) { return r.map.size(tx); }));
    EXPECT_EQ(0U, pool.check().problems.size());
    pool.close();
  }
  EXPECT_EQ(0U, TestPool::open(path_, options()).check().problems.size());
}

TEST_P(ResidentTest, OnAFileTheBackgroundThreadGivesBackAndComesToRest) {
  Options o = options();
  o.medium = "file";
  o.durability = async;
  std::vector<std::uint64_t> model(pages);
  std::mt19937_64 random(3);
  auto pool = make(path_, o);
  for (int i = 0; i < 6000; ++i) add(pool, model, random() % pages);
  EXPECT_LE(own_bytes(pool), limit + limit / 4);
  EXPECT_GT(pool.stats().evictions, pages);
  // More than the limit again and again, with nothing to give back in between.
  for (std::uint64_t n = 0; n < 2 * limit / page; ++n) add(pool, model, n);
  const auto rests = [&pool] {
    const std::uint64_t before = pool.stats().checkpoints;
    ::usleep(100'000);
    return pool.stats().checkpoints == before;
  };
  bool rested = false;
  for (int tries = 0; tries < 100 && !rested; ++tries) rested = rests();
  EXPECT_TRUE(rested);
  EXPECT_EQ(0U, wrong(pool, model));
  pool.close();
}

TEST_P(ResidentTest, ATransactionMayStoreToMoreThanTheLimit) {
  std::vector<std::uint64_t> model(pages);
  auto pool = make(path_, options());
  for (int round = 0; round < 3; ++round) {
    pool.update([&](auto& tx, Root& r) {
      for (std::uint64_t n = 0; n < pages; ++n) {
        auto& word = tx.read(r.words)[n * page_words + n % page_words];
        tx(word) = tx.read(word) + 1;
      }
    });
    for (auto& n : model) ++n;
  }
  add(pool, model, 0);
  EXPECT_LE(own_bytes(pool), limit + 16 * page);
  EXPECT_EQ(0U, wrong(pool, model));
}

TEST_P(ResidentTest, WhatWasRolledBackIsGivenBackToo) {
  std::vector<std::uint64_t> model(pages);
  auto pool = make(path_, options());
  struct Oops {};
  for (std::uint64_t n = 0; n < pages; ++n)
    EXPECT_THROW(pool.update([n](auto& tx, Root& r) {
      tx(tx.read(r.words)[n * page_words]) = 1;
      throw Oops();
    }),
                 Oops);
  EXPECT_GE(own_bytes(pool), pages * page);
  pool.checkpoint();  // it counts them
  add(pool, model, 0);
  EXPECT_LE(own_bytes(pool), limit + 16 * page);
  EXPECT_EQ(0U, wrong(pool, model));
}

TEST_P(ResidentTest, WhereTheSystemRefusesThePagesStay) {
  auto inner = medium::RecordingMedium::make(Shape().medium()).value();
  auto faulty = std::make_unique<medium::FaultyMedium>(std::move(inner));
  auto& calls = *faulty;
  calls.fail(medium::FaultyMedium::Call::drop_copies, 1, EINVAL, true);
  Options o = Shape().options(GetParam());
  o.max_resident = 16 << 10;
  auto pool = TestPool::try_open_on("faulty", o, std::move(faulty), true).value();
  for (std::uint64_t i = 0; i < 2000; ++i)
    pool.update([i](auto& tx, Root& r) { r.map.put(tx, i % 500, i); });
  EXPECT_GT(calls.calls(medium::FaultyMedium::Call::drop_copies), 0U);
  EXPECT_EQ(0U, pool.stats().evictions);
  EXPECT_EQ(0U, pool.check().problems.size());
  pool.close();
}

// --- what decides whether a page is given back, on pages without a pool -------------------------

/// A TM in which another thread does `meanwhile` after the page was chosen and before it is held.
struct Meanwhile {
  std::function<void()> meanwhile;
  bool holds = true;
  void copy_begin() const noexcept {}
  void copy_end() const noexcept {}
  [[nodiscard]] bool direct() const noexcept { return true; }
  template <class F>
  bool hold(const void*, std::size_t, F&& f) {
    if (meanwhile) meanwhile();
    if (holds) f();
    return holds;
  }
};

class ResidentPages : public ::testing::Test {
 protected:
  static constexpr std::uint64_t count = 32;
  ResidentPages() {
    for (std::uint64_t n = 0; n < count; ++n) store(n, 0), checkpoint(n);
  }
  ~ResidentPages() override { ::munmap(view_, count * page); }

  std::uint64_t& word(std::uint64_t n) {
    return *reinterpret_cast<std::uint64_t*>(view_ + n * page + 128);
  }
  /// As a transaction does that commits.
  void store(std::uint64_t n, std::uint64_t value) {
    marks_.mark(n * page + 128, true);
    word(n) = value;
    resident_.note(n);
  }
  void write(std::uint64_t n) {
    medium_->store(medium_->log_bytes() + n * page + 128, &word(n), 8);
  }
  void checkpoint(std::uint64_t n) {
    marks_.take(n, [](std::uint64_t) {});
    write(n);
  }
  /// The pages that one round has given back.
  std::uint64_t given_back(Meanwhile& tm) {
    const std::uint64_t before = resident_.given_back();
    resident_.begin();
    while (resident_.giving_back()) resident_.give_back(tm);
    return resident_.given_back() - before;
  }

  static medium::RecordingOptions geometry() {
    medium::RecordingOptions o;
    o.log_bytes = 1 << 20;
    o.data_bytes = o.max_data_bytes = count * page;
    return o;
  }
  std::unique_ptr<medium::RecordingMedium> medium_ =
      medium::RecordingMedium::make(geometry()).value();
  static std::byte* mapped(medium::Medium& medium) {
    void* const at = ::mmap(nullptr, count * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const view = static_cast<std::byte*>(at);
    EXPECT_TRUE(medium.map_view(view, 0, count * page, medium::ViewKind::copy_on_write).ok());
    return view;
  }
  std::byte* const view_ = mapped(*medium_);
  engine::Marks marks_{count * page};
  engine::shadow::Resident resident_{*medium_, marks_, view_, count* page, 4 * page};
};

TEST_F(ResidentPages, AreGivenBackUntilAQuarterOfTheLimitIsFree) {
  Meanwhile tm;
  EXPECT_EQ(count, resident_.pages());
  EXPECT_GE(given_back(tm), count - 3);
  EXPECT_LE(resident_.pages(), 3U);
}

TEST_F(ResidentPages, StayWhereTheyAreNotHeld) {
  Meanwhile tm;
  tm.holds = false;
  EXPECT_EQ(0U, given_back(tm));
}

// A checkpoint has taken a line and not yet written it; then a store makes the line what the data
// region still has. The checkpoint's write would show through.
TEST_F(ResidentPages, StayIfStoredToSinceTheCheckpointTookTheirMarks) {
  Meanwhile tm;
  tm.meanwhile = [&] {
    for (std::uint64_t n = 0; n < count; ++n) store(n, 0);
  };
  EXPECT_EQ(0U, given_back(tm));
}

TEST_F(ResidentPages, StayUntilTheDataRegionHasWhatTheyHold) {
  Meanwhile tm;
  for (std::uint64_t n = 0; n < count; ++n) {
    store(n, n + 1);
    marks_.take(n, [](std::uint64_t) {});  // not yet written
  }
  EXPECT_EQ(0U, given_back(tm));
  for (std::uint64_t n = 0; n < count; ++n) EXPECT_EQ(n + 1, word(n));
  for (std::uint64_t n = 0; n < count; ++n) write(n);
  EXPECT_GE(given_back(tm), count - 3);
  for (std::uint64_t n = 0; n < count; ++n) EXPECT_EQ(n + 1, word(n));
}

TEST_F(ResidentPages, ThatTheLastCheckpointFoundMarkedGoLast) {
  Meanwhile tm;
  for (std::uint64_t n = 0; n < 3; ++n) resident_.note_marked(n);
  EXPECT_EQ(count - 3, given_back(tm));
  for (std::uint64_t n = 0; n < count; ++n) store(n, 1), checkpoint(n);
  EXPECT_GE(given_back(tm), count - 3);  // now they are like the others
}

TEST(Resident, RefusesWhatItCannotKeep) {
  Scratch scratch;
  const auto open = [&](const char* name, const char* engine, std::uint64_t resident) {
    Options o;
    o.engine = engine;
    o.medium = "emulated";
    o.max_resident = resident;
    return TestPool::try_open(scratch.path(name), o);
  };
  const auto small = open("1", "shadow", 4096);
  EXPECT_EQ(Code::invalid, small.code());
  EXPECT_THAT(small.status().message(), ::testing::HasSubstr("16 KiB or more"));
  const auto copying = open("2", "volatile/stm", 1 << 20);
  EXPECT_EQ(Code::invalid, copying.code());
  EXPECT_THAT(copying.status().message(),
              ::testing::HasSubstr("max_resident for engine 'volatile/stm'"));
  EXPECT_NE(0, ::access(scratch.path("2").c_str(), F_OK));
  EXPECT_TRUE(open("3", "undo", 1 << 20).ok());
}

}  // namespace
}  // namespace perdure::test
