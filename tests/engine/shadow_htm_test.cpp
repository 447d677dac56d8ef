// SPDX-License-Identifier: BSD-3-Clause
//
// shadow/htm (perdure/engine/shadow/htm.md), on the stand-in: it is refused where it can't run;
// what is visible and not durable; power cuts between a transaction's end and its fence, with
// transactions that have seen it; pools that pass from one instance of the family to another. A
// thread is stopped where others may continue (Gate), so nothing is left to chance.
// crash/threads_test.cpp has the same under a scheduler, and the explorer's judgement.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/shadow/instances.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/tm/rtm_stand_in.hpp"
#include "testing/faulty_medium.hpp"
#include "tests/engine/suite.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure::test {
namespace {

using medium::testing::Scratch;

struct Root {
  std::array<p<std::uint64_t>, 64> word;  // line n begins at word 8 * n
};
using Words = std::array<std::uint64_t, 64>;

const EngineInfo& stand_in() { return *engine::find_instance("shadow/htm-stand-in"); }

/// Stops the thread that has entered it at its n-th point at which `word` has `value`. In a try:
/// 1, it has stored the word and is still isolated; 2, the hardware transaction has ended; 3, the
/// thread is about to look at the other rings. Under the lock, that is 3 as well, and 1 and 2 are
/// while it has the lock.
class Gate {
 public:
  Gate(const std::uint64_t* word, std::uint64_t value, int n) : word_(word), value_(value), n_(n) {}
  void enter() { here = this; }
  void wait_until_reached() const {
    while (!reached_) std::this_thread::yield();
  }
  void open() { open_ = true; }
  static void point() {
    Gate* const g = here;
    if (g == nullptr || tm::load_word(g->word_) != g->value_ || --g->n_ != 0) return;
    g->reached_ = true;
    while (!g->open_) std::this_thread::yield();
  }

 private:
  static thread_local Gate* here;
  const std::uint64_t* word_;
  const std::uint64_t value_;
  int n_;
  std::atomic<bool> reached_{false}, open_{false};
};
thread_local Gate* Gate::here = nullptr;

/// Tries that run in the modelled hardware, and tries that all fail, so that the lock is taken.
constexpr tm::RtmStandIn::Limits in_tries{1 << 20, 1 << 20, 0}, under_lock{1 << 20, 0, 0};

class ShadowHtm : public ::testing::Test {
 public:
  ShadowHtm() { limits(in_tries); }
  ~ShadowHtm() override { tm::RtmStandIn::limits() = {}; }
  static void limits(tm::RtmStandIn::Limits l) {
    l.point = &Gate::point;
    tm::RtmStandIn::limits() = l;
  }
  static Shape shape(std::uint32_t threads) {
    Shape s;
    s.threads = threads;
    return s;
  }
  /// The root's words after recovery from a power cut at this instant.
  static Words after_cut(Rig<Root>& rig, const Shape& shape) {
    return words_of(rig.medium->durable_image(), shape);
  }
  static Words words_of(std::span<const std::byte> image, const Shape& shape) {
    const Recovered r = recover(stand_in(), image, shape);
    EXPECT_TRUE(r.status.ok()) << r.status.message();
    EXPECT_TRUE(r.problems.empty());
    Words words{};
    if (r.status.ok()) std::memcpy(words.data(), r.state.root.data(), sizeof words);
    return words;
  }
  static const std::uint64_t* address(AnyPool<Root>& pool, std::size_t word) {
    const std::uint64_t* at = nullptr;
    pool.view(
        [&](auto&, const Root& r) { at = reinterpret_cast<const std::uint64_t*>(&r.word[word]); });
    return at;
  }
};

// DEPEND-1, DEPEND-4, DEPEND-5: B has read what A has not made durable.
TEST_F(ShadowHtm, WhatHasSeenAnOpenTransactionIsNeitherAcknowledgedNorKeptWithoutIt) {
  for (const auto& l : {in_tries, under_lock}) {
    limits(l);
    const Shape shape = this->shape(4);
    auto rig = open_rig<Root>(stand_in(), shape);
    rig.pool.update([](auto& tx, Root& r) { tx(r.word[63]) = 5; });
    Gate gate(address(rig.pool, 0), 1, l.lines_written == 0 ? 3 : 2);
    std::thread a([&] {
      gate.enter();
      rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
    });
    gate.wait_until_reached();
    std::atomic<bool> told{false};
    std::atomic<int> fences{0};
    rig.medium->set_fence_hooks({}, [&] { ++fences; });
    std::thread b([&] {
      rig.pool.update([](auto& tx, Root& r) { tx(r.word[8]) = tx(r.word[0]) + 1; });
      told = true;
    });
    {
      while (fences == 0) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(told) << "a power cut would take back what it has read";
      const Words cut = after_cut(rig, shape);
      EXPECT_EQ(0U, cut[0]);
      EXPECT_EQ(0U, cut[8]) << "its record is durable, and counts only with the other one";
      EXPECT_EQ(5U, cut[63]);
    }
    gate.open();
    a.join();
    b.join();
    rig.medium->set_fence_hooks({}, {});
    const Words cut = after_cut(rig, shape);
    EXPECT_EQ(1U, cut[0]);
    EXPECT_EQ(2U, cut[8]);
  }
}

// A, which has the lower timestamp, looks when B is open, too: if it named B, both would wait.
TEST_F(ShadowHtm, OnlyLowerTimestampsAreWaitedFor) {
  const Shape shape = this->shape(4);
  auto rig = open_rig<Root>(stand_in(), shape);
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[63]) = 5; });
  Gate gate(address(rig.pool, 0), 1, 3);
  std::thread a([&] {
    gate.enter();
    rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  });
  gate.wait_until_reached();
  std::atomic<int> fences{0};
  rig.medium->set_fence_hooks({}, [&] { ++fences; });
  std::thread b([&] { rig.pool.update([](auto& tx, Root& r) { tx(r.word[8]) = 2; }); });
  while (fences == 0) std::this_thread::yield();
  gate.open();
  a.join();
  b.join();
  rig.medium->set_fence_hooks({}, {});
  EXPECT_EQ(1U, after_cut(rig, shape)[0]);
}

// DEPEND-6: A is visible, has marked nothing, and has written no record.
TEST_F(ShadowHtm, ACheckpointsIdDoesNotCoverWhatIsOpen) {
  const Shape shape = this->shape(4);
  auto rig = open_rig<Root>(stand_in(), shape);
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[63]) = 5; });
  rig.pool.checkpoint();
  Gate gate(address(rig.pool, 0), 1, 2);
  std::thread a([&] {
    gate.enter();
    rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  });
  gate.wait_until_reached();
  // The stand-in's clock moves when it is read: A's id must be over.
  for (int i = 0; i < 600; ++i)
    rig.pool.view([](auto& tx, const Root& r) { return std::uint64_t{tx(r.word[0])}; });
  rig.pool.checkpoint();  // there is no line that it would have to wait for
  gate.open();
  a.join();
  EXPECT_EQ(1U, after_cut(rig, shape)[0]);
  rig.pool.checkpoint();
  EXPECT_EQ(0U, rig.pool.stats().log_used) << "the last record is covered by then";
  EXPECT_EQ(1U, after_cut(rig, shape)[0]);
}

// CKPT-1: the copy holds what is visible and not durable.
TEST_F(ShadowHtm, ACheckpointWaitsForWhatItHasCopied) {
  const Shape shape = this->shape(4);
  auto rig = open_rig<Root>(stand_in(), shape);
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[1]) = 5; });  // the line's mark
  Gate gate(address(rig.pool, 0), 1, 2);
  std::thread a([&] {
    gate.enter();
    rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  });
  gate.wait_until_reached();
  std::atomic<bool> done{false};
  std::thread copies([&] {
    rig.pool.checkpoint();
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(done);
  EXPECT_EQ(0U, after_cut(rig, shape)[0]);
  gate.open();
  a.join();
  copies.join();
  EXPECT_EQ(1U, after_cut(rig, shape)[0]);
}

// DEPEND-4: A and B share a ring. A's fence fails while B waits for its turn there; a reader of A
// that has not been told anything yet must find A open, not B in its place.
TEST_F(ShadowHtm, NothingFollowsALostTransactionOnItsRing) {
  const Shape shape = this->shape(1);
  auto recording = medium::RecordingMedium::make(shape.medium()).value();
  auto faulty = std::make_unique<medium::FaultyMedium>(std::move(recording));
  auto* const faults = faulty.get();
  auto pool =
      AnyPool<Root>::try_open_on("recording", shape.options(stand_in()), std::move(faulty), true)
          .value();
  pool.update([](auto& tx, Root& r) { tx(r.word[63]) = 5; });
  const auto refused = [](auto&& f) {
    try {
      f();
      return false;
    } catch (const error& e) {
      return e.code() == Code::poisoned;
    }
  };
  Gate gate(address(pool, 0), 1, 2);
  std::atomic<int> lost{0};
  std::thread a([&] {
    gate.enter();
    lost += refused([&] { pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; }); }) ? 1 : 0;
  });
  gate.wait_until_reached();
  const auto seen =
      pool.update(async, [](auto& tx, Root& r) { return std::uint64_t{tx(r.word[0])}; });
  EXPECT_EQ(1U, seen.value());
  EXPECT_FALSE(seen.durable());
  std::atomic<bool> in_body{false};
  std::thread b([&] {
    lost += refused([&] {
      pool.update([&](auto& tx, Root& r) {
        tx(r.word[8]) = 2;
        in_body = true;
      });
    })
                ? 1
                : 0;
  });
  while (!in_body) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits for its turn
  faults->fail(medium::FaultyMedium::Call::fence, 1, EIO);
  gate.open();
  a.join();
  b.join();
  EXPECT_EQ(2, lost);
  EXPECT_FALSE(seen.durable());
  EXPECT_EQ(Code::poisoned, seen.try_wait().code());
}

TEST_F(ShadowHtm, WaitsForALostTransactionEndInTheError) {
  const Shape shape = this->shape(4);
  auto recording = medium::RecordingMedium::make(shape.medium()).value();
  auto* const raw = recording.get();
  auto faulty = std::make_unique<medium::FaultyMedium>(std::move(recording));
  auto* const faults = faulty.get();
  auto pool =
      AnyPool<Root>::try_open_on("recording", shape.options(stand_in()), std::move(faulty), true)
          .value();
  pool.update([](auto& tx, Root& r) { tx(r.word[63]) = 5; });
  Gate gate(address(pool, 0), 1, 2);
  std::atomic<int> errors{0};
  const auto run = [&](auto&& f) {
    try {
      f();
    } catch (const error& e) {
      errors += e.code() == Code::poisoned ? 1 : 0;
    }
  };
  std::thread a([&] {
    gate.enter();
    run([&] { pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; }); });
  });
  gate.wait_until_reached();
  std::atomic<int> fences{0};
  raw->set_fence_hooks({}, [&] { ++fences; });
  std::thread b([&] {
    run([&] { pool.update([](auto& tx, Root& r) { tx(r.word[8]) = tx(r.word[0]) + 1; }); });
  });
  std::thread views([&] {
    run([&] { pool.view(durable, [](auto& tx, const Root& r) { return tx(r.word[0]); }); });
  });
  while (fences == 0) std::this_thread::yield();
  faults->fail(medium::FaultyMedium::Call::fence, 1, EIO);
  gate.open();
  a.join();
  b.join();
  views.join();
  raw->set_fence_hooks({}, {});
  EXPECT_EQ(3, errors) << "of A, of B, which has read it, and of the view";
  const Words cut = words_of(raw->durable_image(), shape);
  EXPECT_TRUE(cut[0] != 0 || cut[8] == 0) << "B is durable only with A";
}

// Power cuts beside threads that run freely, on the hardware where the processor has it: of each
// thread at least what it was told, and nothing that had read what is lost.
TEST_F(ShadowHtm, PowerCutsBesideThreadsLoseNothingThatWasRead) {
  constexpr std::size_t threads = 4;
  for (const char* name : {"shadow/htm-stand-in", "shadow/htm"}) {
    const EngineInfo& e = *engine::find_instance(name);
    if (!runs_here(e)) continue;
    const Shape shape = this->shape(3);  // two threads share a ring
    auto rig = open_rig<Root>(e, shape);
    std::array<std::atomic<std::uint64_t>, threads> told{};
    std::atomic<bool> stop{false};
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        while (!stop) {
          std::uint64_t mine = 0;
          rig.pool.update([&](auto& tx, Root& r) {
            // A line of each thread: its count, and what it has read of the others'.
            for (std::size_t u = 0; u < threads; ++u)
              if (u != t) tx(r.word[8 * t + 1 + u]) = tx(r.word[8 * u]);
            mine = ++tx(r.word[8 * t]);
          });
          told[t] = mine;
        }
      });
    for (unsigned cut = 0; cut < 300; ++cut) {
      std::array<std::uint64_t, threads> before;
      for (std::size_t t = 0; t < threads; ++t) before[t] = told[t];
      if (cut % 16 == 15) rig.pool.checkpoint();
      const Words words = after_cut(rig, shape);
      for (std::size_t t = 0; t < threads; ++t) {
        EXPECT_GE(words[8 * t], before[t]) << "thread " << t << " was told";
        for (std::size_t u = 0; u < threads; ++u) {
          if (u == t) continue;
          EXPECT_LE(words[8 * t + 1 + u], words[8 * u]) << t << " had read " << u;
        }
      }
      if (HasFailure()) break;
    }
    stop = true;
    for (auto& t : all) t.join();
    print_hardware_commits(e, rig.pool.stats());
  }
}

using Product = Pool<Root, shadow_engines>;
Options options_for(const char* engine, Durability durability = durable) {
  Options o;
  o.engine = engine;
  o.durability = durability;
  o.medium = "emulated";
  o.creation.max_size = 256 << 20;
  o.creation.log_size = 4 << 20;
  return o;
}

TEST_F(ShadowHtm, IsRefusedWhereTheProcessorHasNone) {
  const Status here = engine::find_instance("shadow/htm")->runs_here();
  if (here.ok()) GTEST_SKIP() << "this processor has hardware transactions";
  const Scratch scratch("/dev/shm");
  const Status s = Product::try_open(scratch.path(), options_for("shadow/htm")).status();
  EXPECT_EQ(Code::unsupported, s.code());
  for (const std::string& part : {std::string("'shadow/htm'"), here.message()})
    EXPECT_NE(std::string::npos, s.message().find(part)) << s.message();
  EXPECT_FALSE(std::filesystem::exists(scratch.path())) << "nothing is made";
}

TEST_F(ShadowHtm, RunsWhereTheProcessorHasIt) {
  if (const Status here = engine::find_instance("shadow/htm")->runs_here(); !here.ok())
    GTEST_SKIP() << here.message();
  const Scratch scratch("/dev/shm");
  auto pool = Product::open(scratch.path(), options_for("shadow/htm"));
  in_threads(4, [&](int) {
    for (int i = 0; i < 1000; ++i) pool.update([](auto& tx, Root& r) { ++tx(r.word[0]); });
  });
  pool.view([](auto& tx, const Root& r) { EXPECT_EQ(4000U, std::uint64_t{tx(r.word[0])}); });
  print_hardware_commits(*engine::find_instance("shadow/htm"), pool.stats());
  EXPECT_GT(pool.stats().without_lock, 0U) << "every transaction ran under the lock";
}

TEST_F(ShadowHtm, RefusesAPoolOfThePipelinedOrder) {
  const Scratch scratch("/dev/shm");
  { auto pool = Product::open(scratch.path(), options_for("shadow", async)); }
  const Status s = Product::try_open(scratch.path(), options_for("shadow/htm-stand-in")).status();
  EXPECT_EQ(Code::incompatible, s.code());
  EXPECT_NE(std::string::npos, s.message().find("pipelined commit order")) << s.message();
  auto pool = Product::open(scratch.path(), options_for("shadow", async));
  EXPECT_FALSE(pool::has_feature(pool.header(), pool::Feature::dependent_records));
}

// Ids go on, whichever instance had the pool before.
TEST_F(ShadowHtm, PoolsPassFromInstanceToInstance) {
  const Scratch scratch("/dev/shm");
  std::uint64_t id = 0, value = 0;
  for (const char* engine : {"shadow", "shadow/htm-stand-in", "shadow/stm", "shadow/htm-stand-in",
                             "shadow/htm-stand-in", "shadow"}) {
    auto pool = Product::open(scratch.path(), options_for(engine));
    EXPECT_EQ(engine, pool.engine_name());
    EXPECT_GE(pool.header().checkpoint_id, id);
    id = pool.header().checkpoint_id;
    for (int i = 0; i < 300; ++i)
      pool.update([&](auto& tx, Root& r) {
        EXPECT_EQ(value, std::uint64_t{tx(r.word[0])});
        tx(r.word[0]) = value + 1;
        ++value;
      });
  }
  auto pool = Product::open(scratch.path(), options_for("shadow"));
  EXPECT_TRUE(pool::has_feature(pool.header(), pool::Feature::dependent_records));
  EXPECT_LT(pool.header().checkpoint_id, std::uint64_t{1} << 48) << "what a record has space for";
}

}  // namespace
}  // namespace perdure::test
