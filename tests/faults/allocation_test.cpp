// SPDX-License-Identifier: BSD-3-Clause
//
// ALLOC-1 through Pool<>: a new pool takes little of the disk and grows with use; on a full disk,
// and as a copy without its holes, it reports `full`, loses nothing, is not poisoned, and works
// again when there is space. In every test every medium asserts that no byte is stored where
// nothing is allocated; here every single allocation is refused once.
#include <set>

#include "faults.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "small_disk.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::faults {
namespace {

std::vector<Case> every_engine(std::initializer_list<const char*> media) {
  std::vector<Case> all;
  for (const engine::EngineInfo& e : test::chosen_engines()) {
    // Instances that do not isolate have the same log.
    if (!e.runs_here().ok() || e.isolation != Isolation::full) continue;
    for (const char* medium : media) {
      all.push_back({std::string(e.name), medium, durable});
      if (e.family == "shadow" && std::string(medium) == "emulated")
        all.push_back({std::string(e.name), medium, async});
    }
  }
  return all;
}

// --- a new pool ----------------------------------------------------------------------------------

class NewPool : public ::testing::TestWithParam<Case> {
 protected:
  const bool keeps = !GetParam().engine.starts_with("volatile");
  Options options() const {  // all sizes have their defaults
    Options o;
    o.engine = GetParam().engine;
    o.medium = GetParam().medium;
    o.durability = GetParam().durability;
    return o;
  }
  void expect_small(const char* when) const { EXPECT_LE(blocks_of(path), 1 * MiB) << when; }
  Scratch scratch{GetParam().medium != "file"}, memory;
  const std::string path = scratch.path();
};

TEST_P(NewPool, TakesAtMostOneMiB) {
  {
    TestPool pool = TestPool::open(path, options());
    expect_small("created");
    expect_sound(pool);
    expect_small("checked");
    pool.close();
  }
  expect_small("closed");
  {
    TestPool pool = TestPool::open(path, options());
    expect_small("opened again");
    for (std::uint64_t i = 1; i <= 3; ++i)
      pool.update([&](auto& tx, Root& root) { step(tx, root, i); });
    expect_small("used a little");
    pool.close();
  }
  expect_small("closed again");
  ASSERT_EQ(in_child([&] {
              auto* const pool = new TestPool(TestPool::open(path, options()));  // never destroyed
              for (std::uint64_t i = keeps ? 4 : 1; i <= 5; ++i)
                pool->update(durable, [&](auto& tx, Root& root) { step(tx, root, i); });
            }),
            0);
  expect_small("killed");
  TestPool pool = TestPool::open(path, options());
  expect_small("recovered");
  expect_sound(pool);
  EXPECT_EQ(steps_in(pool), keeps ? 5U : 0U);
  expect_small("checked");
}

TEST_P(NewPool, GrowsWithUseUpToItsLogAndWraps) {
  if (!keeps) GTEST_SKIP() << "no log";
  Options o = options();
  o.creation.threads = 1;
  o.creation.log_size = 2 * MiB;
  o.creation.max_size = 64 * MiB;
  const std::string there = memory.path();  // a sync costs nothing there
  std::uint64_t n = 0;
  {
    TestPool pool = TestPool::open(there, o);
    const std::uint64_t first = blocks_of(there);
    std::uint64_t before = first, steps_of_growth = 0;
    // its log at each commit
    const bool clears = GetParam().engine.find("-fp-") != std::string::npos;
    const auto enough = [&] {
      const Stats s = pool.stats();
      return s.log_bytes > 3 * s.log_capacity || (clears && n >= 500);
    };
    while (!enough()) {
      for (int i = 0; i < 2; ++i)
        pool.update([&, n = ++n](auto& tx, Root& root) {
          step(tx, root, n);
          root.names.put(tx, 100, std::string(2000, static_cast<char>('a' + n % 26)));
        });
      if (const std::uint64_t now = blocks_of(there); now != before) {
        ++steps_of_growth;
        before = now;
      }
    }
    EXPECT_LE(blocks_of(there), first + 2 * MiB + 5 * MiB)
        << "the log, and one step of the data region";
    if (!clears) {
      EXPECT_GE(steps_of_growth, 3U) << "at once";
      EXPECT_GE(blocks_of(there), first + 1 * MiB);
    }
    pool.update([&](auto& tx, Root& root) { root.names.erase(tx, 100); });
    EXPECT_EQ(steps_in(pool), n);
    expect_sound(pool);
  }
  TestPool pool = TestPool::open(there, o);
  EXPECT_EQ(steps_in(pool), n);
  expect_sound(pool);
}

INSTANTIATE_TEST_SUITE_P(Engines, NewPool, ::testing::ValuesIn(every_engine({"emulated", "file"})),
                         CaseName());

// --- a full disk ---------------------------------------------------------------------------------

class LogOnAFullDisk : public ::testing::TestWithParam<Case> {
 protected:
  Options options() const {
    Options o = small(GetParam());
    o.creation.log_size = 4 * MiB;
    o.creation.max_size = 16 * MiB;
    return o;
  }
  Scratch scratch;
  const std::string path = scratch.path();
};

// The log's first pass reaches a place for which the disk has no block: `full`, repeatedly, and
// nothing else. What was acknowledged is present, what was refused is not; when there is space it
// continues; after a kill everything is there.
TEST_P(LogOnAFullDisk, IsFullAndGoesOnWithRoom) {
  on_a_small_disk(scratch, "12m", [&] {
    void* const shared =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    auto& done = *static_cast<std::uint64_t*>(shared);  // acknowledged
    const int r = in_child([&] {
      auto* const pool = new TestPool(TestPool::open(path, options()));  // never destroyed
      pool->update([](auto& tx, Root& root) { step(tx, root, 1); });
      done = 1;
      Filler filler(scratch.path("filler"));
      const auto next = [&] {
        pool->update(durable, [&](auto& tx, Root& root) { step(tx, root, done + 1); });
      };
      Code code = Code::ok;
      while (done < 6000 && (code = code_of(next)) == Code::ok) ++done;
      EXPECT_TRUE(code == Code::full || code == Code::ok) << message_of(next);
      EXPECT_TRUE(code == Code::full || GetParam().engine.find("-fp-") != std::string::npos)
          << "the disk was never full";
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(steps_in(*pool), done);
        EXPECT_EQ(code_of(next), code) << message_of(next);
        if (code == Code::ok) ++done;
      }
      if (code == Code::full) {
        EXPECT_NE(message_of(next).find("disk is full"), std::string::npos) << message_of(next);
      }
      expect_sound(*pool);
      filler.remove();
      for (int i = 0; i < 100; ++i, ++done) ASSERT_EQ(code_of(next), Code::ok) << message_of(next);
      EXPECT_EQ(steps_in(*pool), done);
    });
    EXPECT_EQ(r, 0);
    TestPool pool = TestPool::open(path, options());
    EXPECT_GT(done, 100U);
    EXPECT_EQ(steps_in(pool), done);
    expect_sound(pool);
  });
}

// Closed in order on a full disk, and opened again there: neither takes a block.
TEST_P(LogOnAFullDisk, ClosesAndOpens) {
  on_a_small_disk(scratch, "8m", [&] {
    TestPool pool = TestPool::open(path, options());
    for (std::uint64_t i = 1; i <= 40; ++i)
      pool.update([&](auto& tx, Root& root) { step(tx, root, i); });
    const Filler filler(scratch.path("filler"));
    pool.close();
    { const TestPool closed = std::move(pool); }
    TestPool again = TestPool::open(path, options());
    EXPECT_EQ(steps_in(again), 40U);
    expect_sound(again);
    // The log begins anew, in its allocated part.
    again.update([](auto& tx, Root& root) { step(tx, root, 41); });
    EXPECT_EQ(steps_in(again), 41U);
  });
}

std::vector<Case> logging_engines() {
  std::vector<Case> all;
  for (const Case& c : every_engine({"emulated", "file"}))
    if (!c.engine.starts_with("volatile")) all.push_back(c);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Engines, LogOnAFullDisk, ::testing::ValuesIn(logging_engines()),
                         CaseName());

// --- a copy without holes ------------------------------------------------------------------------

/// Blocks that are mostly zeros, and a few full ones.
struct Sparse {
  static constexpr std::size_t blocks = 24;
  static constexpr std::uint64_t bytes = 100'000;
  p<std::uint64_t> count;
  ptr<std::byte> block[blocks];
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (const auto& b : block)
      if (tx(b) != nullptr) f(tx(b));
  }
};
using SparsePool = Pool<Sparse, Tested>;

class SparseCopy : public ::testing::TestWithParam<Case> {
 protected:
  Options options() const {
    Options o = small(GetParam());
    o.creation.log_size = 2 * MiB;
    return o;
  }
  static void fill(SparsePool& pool, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      pool.update(durable, [&](auto& tx, Sparse& root) {
        tx(root.block[i]) = tx.alloc(Sparse::bytes);
        const std::string text(100, static_cast<char>('a' + i));
        tx.write_bytes(tx(root.block[i]) + 5000 * (i % 3), text.data(), text.size());
        tx(root.count) = i + 1;
      });
  }
  static void expect_filled(SparsePool& pool, std::size_t n) {
    pool.view([&](auto& tx, const Sparse& root) {
      EXPECT_EQ(tx(root.count), n);
      for (std::size_t i = 0; i < n; ++i) {
        std::string found(Sparse::bytes, 'x'), expected(Sparse::bytes, '\0');
        expected.replace(5000 * (i % 3), 100, std::string(100, static_cast<char>('a' + i)));
        tx.read_bytes(found.data(), tx(root.block[i]), found.size());
        EXPECT_EQ(found, expected) << i;
      }
    });
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }
  // The copy lies on a full disk: every call that needs blocks is refused, and changes nothing.
  // With space, everything is present.
  void refused_then_there(std::size_t n) {
    ASSERT_TRUE(copy_sparsely(original.path(), path));
    Filler filler(scratch.path("filler"));
    EXPECT_LT(blocks_of(path), blocks_of(original.path())) << "not sparse";
    const std::string before = read_all(path);
    for (int i = 0; i < 2; ++i) {
      const auto pool = SparsePool::try_open(path, options());
      EXPECT_EQ(pool.code(), Code::full) << pool.status().message();
      EXPECT_NE(pool.status().message().find("disk is full"), std::string::npos)
          << pool.status().message();
      EXPECT_EQ(read_all(path), before) << "changed";
    }
    filler.remove();
    SparsePool pool = SparsePool::open(path, options());
    expect_filled(pool, n);
    fill(pool, n, Sparse::blocks);
    expect_filled(pool, Sparse::blocks);
  }
  Scratch original, scratch;
  const std::string path = scratch.path();
};

TEST_P(SparseCopy, OfAPoolThatWasClosed) {
  {
    SparsePool pool = SparsePool::open(original.path(), options());
    fill(pool, 0, 20);
  }
  on_a_small_disk(scratch, "10m", [&] { refused_then_there(20); });
}

TEST_P(SparseCopy, OfAPoolThatWasKilled) {
  ASSERT_EQ(
      in_child([&] { fill(*new SparsePool(SparsePool::open(original.path(), options())), 0, 20); }),
      0);
  on_a_small_disk(scratch, "10m", [&] { refused_then_there(20); });
}

// Its free chunks are holes, its used ones are not: it opens, and an allocation is refused.
TEST_P(SparseCopy, OfAPoolWithFreeChunksOnly) {
  {
    SparsePool pool = SparsePool::open(original.path(), options());
    fill(pool, 0, 1);
    pool.update([](auto& tx, Sparse& root) {
      tx.free(tx(root.block[0]));
      tx(root.block[0]) = nullptr;
      tx(root.count) = 0;
    });
  }
  on_a_small_disk(scratch, "10m", [&] {
    ASSERT_TRUE(copy_sparsely(original.path(), path));
    Filler filler(scratch.path("filler"));
    auto pool = SparsePool::try_open(path, options());
    if (pool.code() == Code::full) {  // a page of the root's span was zeros
      filler.remove();
      pool = SparsePool::try_open(path, options());
      ASSERT_TRUE(pool.ok()) << pool.status().message();
      return expect_filled(*pool, 0);
    }
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    const auto more = [&] { fill(*pool, 0, 1); };
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(code_of(more), Code::full) << message_of(more);
      EXPECT_NE(message_of(more).find("disk is full"), std::string::npos) << message_of(more);
      expect_filled(*pool, 0);
    }
    filler.remove();
    EXPECT_EQ(code_of(more), Code::ok) << message_of(more);
    fill(*pool, 1, Sparse::blocks);
    expect_filled(*pool, Sparse::blocks);
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, SparseCopy, ::testing::ValuesIn(logging_engines()), CaseName());

// --- every allocation refused --------------------------------------------------------------------

class Refused : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint64_t steps = 60;
  Options options() const {
    Options o = small(GetParam());
    o.creation.log_size = (GetParam().engine.starts_with("rewind") ? 1024 : 128) * KiB;
    return o;
  }
  medium::RecordingOptions shape() const {
    medium::RecordingOptions o;
    o.log_bytes = pool::first_ring + options().creation.log_size;
    o.data_bytes = 24 * pool::chunk_bytes;
    o.max_data_bytes = 64 * pool::chunk_bytes;
    o.sparse = true;
    return o;
  }
  static void one(TestPool& pool, std::uint64_t i) {
    pool.update(durable, [&](auto& tx, Root& root) {
      step(tx, root, i);
      if (tx(root.block) != nullptr) tx.free(tx(root.block));
      tx(root.block) = tx.alloc(i % 5 == 0 ? 100'000 : 300);
    });
  }
};

// The n-th allocation is refused, for every n, of the first session or of the one that recovers.
// The call reports `full`; the same call succeeds when repeated, and nothing is lost.
TEST_P(Refused, AtEveryCall) {
  using Call = medium::FaultyMedium::Call;
  for (std::uint64_t n = 1, last = ~std::uint64_t{0}; n <= last; ++n) {
    SCOPED_TRACE(n);
    auto recording = medium::RecordingMedium::make(shape()).value();
    medium::RecordingMedium* raw = recording.get();
    auto made = std::make_unique<medium::FaultyMedium>(std::move(recording));
    medium::FaultyMedium* faulty = made.get();
    faulty->fail(Call::allocate, n, ENOSPC);
    auto pool = TestPool::try_open_on("refused", options(), std::move(made), true);
    if (!pool.ok()) {
      ASSERT_EQ(pool.code(), Code::full) << pool.status().message();
      continue;
    }
    std::uint64_t refused = 0;
    for (std::uint64_t i = 1; i <= steps; ++i) {
      const Code code = code_of([&] { one(*pool, i); });
      if (code == Code::ok) continue;
      ASSERT_EQ(code, Code::full);
      ASSERT_EQ(++refused, 1U) << "refused twice";
      EXPECT_EQ(steps_in(*pool), i - 1);
      --i;
    }
    EXPECT_EQ(steps_in(*pool), steps);
    expect_sound(*pool);
    if (faulty->calls(Call::allocate) < n) last = n;  // there was no such call
    const auto image = raw->current_image();
    { const TestPool gone = std::move(*pool); }
    medium::RecordingOptions again = shape();
    again.data_bytes = image.size() - again.log_bytes;
    auto cut =
        std::make_unique<medium::FaultyMedium>(medium::RecordingMedium::make(again, image).value());
    cut->fail(Call::allocate, n, ENOSPC);
    auto recovered = TestPool::try_open_on("refused", options(), std::move(cut), false);
    if (!recovered.ok()) {
      ASSERT_EQ(recovered.code(), Code::full) << recovered.status().message();
      last = ~std::uint64_t{0};  // there may be more
      recovered = TestPool::try_open_on("refused", options(),
                                        medium::RecordingMedium::make(again, image).value(), false);
      ASSERT_TRUE(recovered.ok()) << recovered.status().message();
    }
    EXPECT_EQ(steps_in(*recovered), steps);
    expect_sound(*recovered);
  }
}

std::vector<Case> on_memory() {
  std::vector<Case> all;
  for (const Case& c : logging_engines())
    if (c.medium == "emulated") all.push_back(c);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Engines, Refused, ::testing::ValuesIn(on_memory()), CaseName());

}  // namespace
}  // namespace perdure::faults
