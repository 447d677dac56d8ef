// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND in all twelve compositions, explored with power cuts; with one log for the pool and with
// one log per thread, on memory and on a medium that behaves like a file.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "papers/rewind/aries_record.hpp"
#include "testing/crashtest.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/conformance/workloads.hpp"
#include "tests/engine/one_engine.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

std::vector<EngineInfo> compositions() {
  return engines_that([](const EngineInfo& e) { return is_rewind(e) && isolates(e); });
}

class Rewind : public EngineTest {
 protected:
  [[nodiscard]] static bool has(const char* part) {
    return GetParam().family.find(part) != std::string_view::npos;
  }
  template <class Workload>
  void explore(std::uint64_t steps = 24) {
    explore_engine<Workload>(GetParam(), steps, 1000);
  }
  static Shape small() {
    Shape s;
    s.threads = 1;
    s.ring_bytes = has("-1l-") ? 16384 : 65536;
    return s;
  }
};
ENGINE_SUITE(Rewind, compositions);

TEST_P(Rewind, GoesOnInASmallLogAndGivesNoIdTwice) {
  go_on_in_a_small_log(GetParam(), small(), 600 / scale);
}

TEST_P(Rewind, RefusesWhatNeverFits) {
  auto rig = open_rig<Words>(GetParam(), small());
  for (int i = 0; i < 3; ++i) {
    try {
      rig.pool.update([](auto& tx, Words& r) {
        for (auto& w : r.word) tx(w) = 7;
      });
      FAIL() << "a transaction larger than its log";
    } catch (const error& e) {
      EXPECT_EQ(Code::too_big, e.code());
    }
  }
  rig.pool.view([](auto& tx, const Words& r) {
    for (const auto& w : r.word) ASSERT_EQ(0U, tx(w));
  });
  EXPECT_EQ(1U, rig.pool.update([](auto& tx, Words& r) { return ++tx(r.word[1]); }).value());
}

// Fences of a transaction of k words: those of the paper, and those of its synchronous stores, each
// of which is a fence on x86.
TEST_P(Rewind, CostsWhatItShould) {
  const bool force = has("-fp-"), batch = has("batch"), simple = has("simple");
  if (has("-1l-")) {
    auto rig = open_rig<Words>(GetParam(), small());
    const auto write = [&](std::uint64_t k) {
      rig.pool.update([&](auto& tx, Words& r) {
        for (std::size_t w = 0; w < k; ++w) tx(r.word[w]) = k;
      });
    };
    write(2);
    for (const std::uint64_t k : {1, 3, 5}) {
      const auto before = rig.medium->counters();
      const std::uint64_t logged = rig.pool.stats().log_bytes;
      write(k);
      EXPECT_EQ((k + 1) * papers::rewind::AriesRecord::bytes, rig.pool.stats().log_bytes - logged)
          << k;
      const std::uint64_t fences = (rig.medium->counters() - before).fences;
      const std::uint64_t append = simple ? 5 : 2;  // per record, including END
      // Removed: k records, which share a fence, and then the END before them.
      const std::uint64_t removed = simple ? 4 * (k + 1) : 2;
      if (batch)
        // A group is two records: k words, END; no-force: both in one group.
        EXPECT_EQ(force ? 2 + 2 + removed : 2, fences) << k;
      else
        EXPECT_EQ((k + 1) * append + (force ? removed : 0), fences) << k;
    }
  }
}

// The group is not part of the format: a pool is recovered and continues whatever its group was. k
// words and END make groups of that number of records; two fences per group.
TEST_P(Rewind, GroupsMayDifferAtEachOpening) {
  if (!has("-1l-nfp-batch")) return;
  constexpr std::uint64_t k = 40;
  std::vector<std::byte> image;
  for (const std::uint32_t group : {32U, 4U, 0U, 1000U}) {
    Shape shape = small();
    shape.rewind.log_group = group;
    shape.ring_bytes = 1 << 20;  // a bucket of 1000 cells: none is added meanwhile
    auto rig = open_rig<Words>(GetParam(), shape, image);
    const std::uint64_t before = rig.pool.stats().recovery.last_id;
    EXPECT_EQ(image.empty() ? 0U : 2U, rig.pool.stats().recovery.transactions) << group;
    rig.pool.view([&](auto& tx, const Words& r) {
      for (std::size_t w = 0; w < k; ++w)
        ASSERT_EQ(before == 0 ? 0 : before + w, tx(r.word[w])) << group;
    });
    for (std::uint64_t i = 1; i <= 2; ++i) {
      const std::uint64_t fences = rig.medium->counters().fences;
      rig.pool.update([&](auto& tx, Words& r) {
        for (std::size_t w = 0; w < k; ++w) tx(r.word[w]) = before + i + w;
      });
      if (i == 2) {  // the first one's list of buckets grows
        EXPECT_EQ(((k + 1) + (group == 0 ? 8 : group) - 1) / (group == 0 ? 8 : group) * 2,
                  rig.medium->counters().fences - fences)
            << group;
      }
    }
    image = rig.medium->current_image();  // as after a kill
  }
  for (const std::uint32_t wrong : {1U, 1001U}) {
    Options o = small().options(GetParam());
    o.engine_options = papers::RewindOptions{.log_group = wrong};
    auto made = medium::RecordingMedium::make(small().medium(), {}).value();
    EXPECT_EQ(Code::invalid,
              AnyPool<Words>::try_open_on("recording", o, std::move(made), true).code());
  }
}

// A crash leaves the data region newer than the log: what a rolled back transaction had allocated
// is now a span of small blocks, and neither its stores nor its CLRs may overwrite that span's
// bitmap.
TEST_P(Rewind, RedoesNothingOfWhatWasRolledBack) {
  static constexpr std::uint64_t sizes[] = {16, 48, 100, 300, 1000, 3000};
  std::vector<std::byte> image;
  {
    auto rig = open_rig<Words>(GetParam(), small());
    const auto fill = [](auto& tx) {
      auto* const block =
          reinterpret_cast<p<std::uint64_t>*>(tx.alloc(std::size(sizes) * pool::chunk_bytes));
      for (std::size_t c = 0; c < std::size(sizes); ++c)
        tx(block[c * pool::chunk_bytes / 8]) = ~tx(block[c * pool::chunk_bytes / 8]);
      return block;
    };
    void* before = nullptr;
    rig.pool.update([&](auto& tx, Words&) { before = fill(tx); });
    rig.pool.update([&](auto& tx, Words&) { tx.free(before); });
    rig.pool.checkpoint();
    EXPECT_THROW(rig.pool.update([&](auto& tx, Words&) { fill(tx), throw Oops(); }), Oops);
    for (const std::uint64_t bytes : sizes)
      rig.pool.update([&](auto& tx, Words& r) {
        tx(r.word[bytes % 1000]) = reinterpret_cast<std::uint64_t>(tx.alloc(bytes));
      });
    image = rig.medium->current_image();
  }
  auto again = open_rig<Words>(GetParam(), small(), image);
  const CheckReport check = again.pool.check();
  EXPECT_EQ(std::size(sizes), check.leaked) << check.problems.front();  // a Words owns nothing
  EXPECT_EQ(check.leaked, check.problems.size()) << check.problems.front();
}

// Force: the records of a rollback are durably removed before its END is (REWIND-3). Otherwise a
// power cut in the next transaction finds them without it, and puts the old value back. Their last
// cells' line is not the one that the next record goes to for some numbers of records.
TEST_P(Rewind, WhatWasRolledBackAndRemovedDoesNotComeBack) {
  if (!has("-fp-")) return;
  struct RolledBack {};
  for (std::uint64_t before = 1; before <= 4; ++before)
    for (std::uint64_t stores = 1; stores <= 8; ++stores) {
      auto rig = open_rig<Words>(GetParam(), small());
      rig.pool.update([&](auto& tx, Words& r) {
        for (std::uint64_t w = 0; w < before; ++w) tx(r.word[w * 8]) = 1;
      });
      const auto rolls_back = [&](auto& tx, Words& r) {
        for (std::uint64_t w = 0; w < stores; ++w) tx(r.word[w * 8]) = 2;
        throw RolledBack();
      };
      EXPECT_THROW(rig.pool.update(rolls_back), RolledBack);
      std::vector<std::vector<std::byte>> images;
      rig.medium->set_fence_hooks([&] { images.push_back(rig.medium->durable_image()); }, {});
      rig.pool.update([](auto& tx, Words& r) { tx(r.word[0]) = tx(r.word[400]) = 3; });
      rig.medium->set_fence_hooks({}, {});
      for (const auto& image : images) {
        const Recovered r = recover(GetParam(), image, small());
        ASSERT_TRUE(r.status.ok()) << r.status.message();
        std::uint64_t found[401];
        std::memcpy(found, r.state.root.data(), sizeof found);
        EXPECT_TRUE((found[0] == 1 && found[400] == 0) || (found[0] == 3 && found[400] == 3))
            << found[0] << ", " << found[400] << " behind " << stores << " stores";
      }
    }
}

// A checkpoint between a transaction's END and its heap bits: the records are still needed
// (REWIND-4: X does not cover it).
TEST_P(Rewind, KeepsTheRecordsOfACommitThatHasNotEnded) {
  if (has("-fp-")) return;  // no checkpoints
  const auto allocate = [](auto& pool) {
    pool.update(
        [](auto& tx, Words& r) { tx(r.word[1]) = reinterpret_cast<std::uint64_t>(tx.alloc(48)); });
  };
  const auto warm = [](auto& pool) { pool.update([](auto& tx, Words& r) { tx(r.word[0]) = 1; }); };
  std::uint64_t fences = 0;  // the last one lies between a new span's bitmap and its directory word
  {
    auto rig = open_rig<Words>(GetParam(), small());
    warm(rig.pool);
    fences = rig.medium->counters().fences;
    allocate(rig.pool);
    fences = rig.medium->counters().fences - fences;
  }
  auto rig = open_rig<Words>(GetParam(), small());
  warm(rig.pool);
  std::atomic<std::thread::id> committer;
  std::atomic<std::uint64_t> seen{0};
  std::atomic<bool> there{false}, go{false};
  rig.medium->set_fence_hooks(
      [&] {
        if (std::this_thread::get_id() != committer.load() || ++seen != fences) return;
        there = true;
        while (!go) std::this_thread::yield();
      },
      {});
  std::thread thread([&] {
    committer = std::this_thread::get_id();
    allocate(rig.pool);
  });
  while (!there) std::this_thread::yield();
  rig.pool.checkpoint();
  const auto image = rig.medium->durable_image();
  go = true;
  thread.join();
  rig.medium->set_fence_hooks({}, {});
  const Recovered r = recover(GetParam(), image, small());
  ASSERT_TRUE(r.status.ok()) << r.status.message();
  EXPECT_EQ(std::vector<std::string>(), r.problems);
  EXPECT_EQ(1U, r.state.blocks.size());
}

// A checkpoint goes through the logs one by one (REWIND-4). Two transactions store to one word; the
// older one's log may still have its records when the younger one's are removed already. Recovery
// must not do the older one again, and no id is drawn twice.
TEST_P(Rewind, RemovesRecordsWhenTheHeaderSaysSo) {
  if (has("-fp-")) return;  // no checkpoints
  const Shape shape = [] {
    Shape s = small();
    s.threads = 2;
    return s;
  }();
  std::uint64_t with_records = 0;
  for (const bool newer_first : {false, true}) {
    auto rig = open_rig<Words>(GetParam(), shape);
    const auto store = [&](std::uint64_t value) {
      return rig.pool.update([&](auto& tx, Words& r) { tx(r.word[3]) = value; }).id();
    };
    // A thread gets its log at its first transaction, so the first thread here has the first log.
    std::atomic<int> turn{0};
    std::uint64_t id = 0;
    const auto at = [&](int t, auto&& f) {
      while (turn != t) std::this_thread::yield();
      f();
      ++turn;
    };
    std::thread one([&] {
      at(0, [&] { store(10); });
      at(2, [&] {
        if (!newer_first) id = store(1);
      });
      at(4, [&] {
        if (newer_first) id = store(2);
      });
    });
    std::thread other([&] {
      at(1, [&] { store(20); });
      at(3, [&] { id = store(newer_first ? 1 : 2); });
    });
    one.join();
    other.join();
    std::vector<std::vector<std::byte>> images;
    rig.medium->set_fence_hooks([&] { images.push_back(rig.medium->durable_image()); }, {});
    rig.pool.checkpoint();
    rig.medium->set_fence_hooks({}, {});
    images.push_back(rig.medium->durable_image());
    for (const auto& image : images) {
      const Recovered r = recover(GetParam(), image, shape);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      EXPECT_EQ(id, r.report.last_id);
      std::uint64_t value = 0;
      std::memcpy(&value, r.state.root.data() + 3 * 8, 8);
      EXPECT_EQ(2U, value) << newer_first;
      with_records += r.report.records != 0 ? 1 : 0;
    }
  }
  EXPECT_NE(0U, with_records) << "no image has a record left";
}

// Force: a transaction that only allocates. The caches have written back the log, but not the data
// region's bits: none of its records may have been removed by then.
TEST_P(Rewind, HasHeapBitsInTheDataRegionBeforeTheirRecordsAreRemoved) {
  if (!has("-fp-")) return;
  const Shape shape = small();
  const std::uint64_t log_bytes = shape.medium().log_bytes;
  auto rig = open_rig<Words>(GetParam(), shape);
  const auto allocate = [&] {
    return rig.pool.update([](auto& tx, Words&) { (void)tx.alloc(48); }).id();
  };
  allocate();  // makes its span
  std::vector<std::vector<std::byte>> images;
  rig.medium->set_fence_hooks(
      [&] {
        images.push_back(rig.medium->durable_image());
        const auto visible = rig.medium->current_image();
        std::copy_n(visible.begin(), log_bytes, images.back().begin());
      },
      {});
  const std::uint64_t id = allocate();
  rig.medium->set_fence_hooks({}, {});
  std::set<std::uint64_t> blocks;
  for (const auto& image : images) {
    const Recovered r = recover(GetParam(), image, shape);
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    EXPECT_EQ(r.report.last_id >= id ? 2U : 1U, r.state.blocks.size());
    blocks.insert(r.state.blocks.size());
  }
  EXPECT_EQ((std::set<std::uint64_t>{1, 2}), blocks);
}

TEST_P(Rewind, LosesNoOldValues) { explore<TakenBack>(16); }
TEST_P(Rewind, LosesNoSwaps) { explore<conformance::Swaps>(); }
TEST_P(Rewind, LosesNoBlocks) { explore<conformance::Churn>(); }

}  // namespace
}  // namespace perdure::test
