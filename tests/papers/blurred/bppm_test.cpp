// SPDX-License-Identifier: BSD-3-Clause
//
// Blurred Persistence and the systems with which it is compared: each explored with power cuts; the
// cost of a commit; generations of its log; the order of the contents of several threads' logs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "papers/blurred/torn_log.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/conformance/workloads.hpp"
#include "tests/engine/one_engine.hpp"
#include "tests/engine/suite.hpp"
#include "tests/engine/watch.hpp"

namespace perdure::test {
namespace {

std::vector<EngineInfo> systems() {
  return engines_that([](const EngineInfo& e) { return is_blurred(e) && isolates(e); });
}

class Blurred : public EngineTest {
 protected:
  [[nodiscard]] static bool is(const char* name) { return GetParam().family == name; }
  [[nodiscard]] static bool in_log() { return is("bppm") || is("bppm-xil") || is("bppm-xil-late"); }
  [[nodiscard]] static bool ordered() { return is("redo-base-ordered"); }
  [[nodiscard]] static bool in_bulk() { return is("bppm") || is("redo-vcbp"); }
  [[nodiscard]] static bool by_a_thread() { return is("redo-mne-async"); }
  template <class Workload>
  void explore(std::uint64_t steps = 24) {
    explore_engine<Workload>(GetParam(), steps, 500);
  }
  static Shape small(std::uint32_t threads = 1) {
    Shape s;
    s.threads = threads;
    s.ring_bytes = 16384;
    return s;
  }
};
ENGINE_SUITE(Blurred, systems);

// Many generations of a log of 1,020 records, with runs that abort.
TEST_P(Blurred, GoesOnInASmallLogAndGivesNoIdTwice) {
  go_on_in_a_small_log(GetParam(), small(), 1000 / scale);
}

TEST_P(Blurred, ReadsWhatItHasWrittenAndOthersDoNot) {
  auto rig = open_rig<Words>(GetParam(), small());
  rig.pool.update([](auto& tx, Words& r) {
    for (std::uint64_t v = 1; v <= 3; ++v) {
      tx(r.word[5]) = v;
      EXPECT_EQ(v, tx.read(r.word[5]));
      // The data region, which every thread sees.
      EXPECT_EQ(0U, *reinterpret_cast<const std::uint64_t*>(&r.word[5]));
    }
  });
  rig.pool.view([](auto& tx, const Words& r) { EXPECT_EQ(3U, tx(r.word[5])); });
}

TEST_P(Blurred, RefusesWhatNeverFits) {
  Shape shape = small();
  auto rig = open_rig<std::array<Words, 2>>(GetParam(), shape);
  for (int i = 0; i < 3; ++i) {
    try {
      rig.pool.update([](auto& tx, auto& both) {
        for (auto& r : both)
          for (auto& w : r.word) tx(w) = 7;
      });
      FAIL() << "a transaction larger than its log";
    } catch (const error& e) {
      EXPECT_EQ(Code::too_big, e.code());
    }
  }
  rig.pool.view([](auto& tx, const auto& both) {
    for (const auto& r : both)
      for (const auto& w : r.word) ASSERT_EQ(0U, tx(w));
  });
  rig.pool.update([](auto& tx, auto& both) {  // nearly everything that a generation has space for
    for (std::size_t w = 0; w < 1000; ++w) tx(both[0].word[w]) = w;
  });
}

// k words: one fence before the data region has any of them (ordered: the records', the commit
// record's, the tail's); SYNC: two more, one for the data region and, unless it is late, one for
// the log's control. 16 bytes per word, and 16 for the commit record.
TEST_P(Blurred, CostsWhatItShould) {
  auto made =
      std::make_unique<WatchMedium>(medium::RecordingMedium::make(small().medium()).value());
  WatchMedium& medium = *made;
  auto pool =
      AnyPool<Words>::try_open_on("recording", small().options(GetParam()), std::move(made), true)
          .value();
  std::uint64_t records = 1;  // of the generation
  for (const std::uint64_t k : {1, 3, 8, 40}) {
    const std::uint64_t fences = medium.my_fences(), logged = pool.stats().log_bytes;
    const auto before = medium.counters();
    std::uint64_t fences_of_data = 0;
    medium.before_data_write([&](std::uint64_t, const void*, std::size_t) {
      if (fences_of_data == 0) fences_of_data = medium.my_fences() - fences;
    });
    pool.update([&](auto& tx, Words& r) {
      for (std::size_t w = 0; w < k; ++w) tx(r.word[w * 8]) = k;
    });
    medium.before_data_write({});
    const std::uint64_t of_log = ordered() ? 3 : 1;
    EXPECT_EQ(of_log, fences_of_data) << k;  // nothing is visible before it is durable
    const std::uint64_t of_data = in_bulk() || by_a_thread() ? 0 : is("bppm-xil-late") ? 1 : 2;
    EXPECT_EQ(of_log + of_data, medium.my_fences() - fences) << k;
    EXPECT_EQ((k + 1) * papers::blurred::TornRecord::bytes, pool.stats().log_bytes - logged) << k;
    if (by_a_thread()) pool.checkpoint();
    const auto cost = medium.counters() - before;
    const auto lines = [records](std::uint64_t n) { return (records + n) / 4 - records / 4 + 1; };
    // Ordered: the commit record's line, and the tail's.
    const std::uint64_t log_lines = ordered() ? lines(k - 1) + 2 : lines(k);
    records += k + 1;
    if (in_bulk()) {
      EXPECT_EQ(log_lines, cost.flushed_lines) << k;  // no line of the data region
    } else if (!by_a_thread()) {
      // The data region's lines, and the control.
      EXPECT_EQ(log_lines + k + (is("bppm-xil-late") ? 0 : 1),
                cost.flushed_lines + cost.streamed_lines)
          << k;
    }
    EXPECT_EQ((is("redo-mne-sync") && k > 4) || is("redo-mne-past"),
              cost.streamed_lines != 0 && !by_a_thread())
        << k;
  }
}

TEST_P(Blurred, ReadsCostTheMediumNothing) {
  auto rig = open_rig<Words>(GetParam(), small());
  rig.pool.update([](auto& tx, Words& r) { tx(r.word[1]) = 1; });
  if (by_a_thread()) rig.pool.checkpoint();
  const auto before = rig.medium->counters();
  for (int i = 0; i < 10; ++i) {
    rig.pool.view([](auto& tx, const Words& r) { return std::uint64_t{tx(r.word[1])}; });
    rig.pool.update([](auto& tx, Words& r) { return std::uint64_t{tx(r.word[1])}; });
  }
  const auto after = rig.medium->counters() - before;
  EXPECT_EQ(0U, after.stores + after.streamed_lines + after.flushed_lines + after.fences);
}

// Two threads overwrite a word, in either order of their logs; the second one's log is truncated,
// the first one's remains. Without X the older value would come back (BPPM-2; design: recycling
// logs). The mutation gate removes X.
TEST_P(Blurred, AnOlderValueInAnothersLogDoesNotComeBack) {
  // Until the log has begun another generation.
  an_older_value_does_not_come_back(GetParam(), small(4), 300);
}

// A power cut before each call of the medium in the transactions that end a generation: in bulk
// persistence, between it and X, between X and the new generation.
TEST_P(Blurred, SurvivesAPowerCutWhileItsLogIsTruncated) {
  const Shape shape = small();
  std::vector<std::vector<std::byte>> images;
  bool near_its_end = false;
  auto made = std::make_unique<WatchMedium>(medium::RecordingMedium::make(shape.medium()).value());
  WatchMedium& medium = *made;
  auto pool =
      AnyPool<Words>::try_open_on("recording", shape.options(GetParam()), std::move(made), true)
          .value();
  medium.before_each([&, self = std::this_thread::get_id()](WatchMedium::Call, std::uint64_t) {
    // ASYNC: the calls of the truncating thread.
    if (std::this_thread::get_id() != self || !near_its_end) return;
    images.push_back(medium.recording().durable_image());
    images.push_back(medium.recording().current_image());
  });
  // generations; what a transaction adds to a log.
  std::uint64_t ended = 0, last_used = 0, biggest = 0;
  for (std::uint64_t i = 1; ended < 2; ++i) {
    ASSERT_LT(i, 2000U);
    const std::uint64_t used = pool.stats().log_used;
    biggest = std::max(biggest, used > last_used ? used - last_used : 0);
    last_used = used;
    near_its_end = used + 2 * biggest >= shape.ring_bytes - 128;
    pool.update([&](auto& tx, Words& r) {
      for (std::size_t w = 0; w < 400; w += 100) tx(r.word[w]) = i;
    });
    const bool truncated = pool.stats().log_used < used;
    if (truncated) {
      ++ended;
      EXPECT_GT(images.size(), 20U);
    }
    near_its_end = false;
    for (const auto& image : images) {
      const Recovered r = recover(GetParam(), image, shape);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      std::uint64_t first = 0;
      std::memcpy(&first, r.state.root.data(), 8);
      ASSERT_TRUE(first == i || first == i - 1) << first << " in transaction " << i;
      for (std::size_t w = 0; w < 400; w += 100)
        EXPECT_EQ(0, std::memcmp(&first, r.state.root.data() + 8 * w, 8)) << i;
    }
    images.clear();
  }
}

// TORN-6: a commit record whose torn bit is flipped is a hole, and the log seems to end before it.
// An ordered log's tail shows that it does not; the data region holds the transaction in any case.
TEST_P(Blurred, ATailNamesAnAcknowledgedTransactionThatIsGone) {
  if (in_bulk() || by_a_thread()) return;  // it is acknowledged data that would be lost
  auto rig = open_rig<Words>(GetParam(), small());
  rig.pool.update([](auto& tx, Words& r) { tx(r.word[1]) = 7; });
  auto image = rig.medium->current_image();
  const auto record = [&](std::uint64_t n) -> papers::blurred::TornRecord& {
    return *reinterpret_cast<papers::blurred::TornRecord*>(
        image.data() + pool::ring_offset(rig.pool.file().header(), 0) +
        papers::blurred::TornLog::control_bytes + n * papers::blurred::TornRecord::bytes);
  };
  ASSERT_EQ(papers::blurred::TornKind::commit, record(2).kind());
  record(2).data ^= papers::blurred::TornRecord::torn_of_data;
  const Recovered r = recover(GetParam(), image, small());
  EXPECT_EQ(ordered() ? Code::corrupt : Code::ok, r.status.code()) << r.status.message();
  if (ordered()) {
    EXPECT_NE(r.status.message().find("its tail"), std::string::npos) << r.status.message();
  }
}

TEST_P(Blurred, LosesNoOldValues) { explore<TakenBack>(); }
TEST_P(Blurred, LosesNoSwaps) { explore<conformance::Swaps>(); }
TEST_P(Blurred, LosesNoBlocks) { explore<conformance::Churn>(); }

}  // namespace
}  // namespace perdure::test
