// SPDX-License-Identifier: BSD-3-Clause
//
// A thread that releases log space is stopped in the middle, and others continue as far as they
// can: nothing that recovery still needs may be overwritten, or passed. (In crash/threads_test it
// would be a matter of luck which steps coincide.)
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "tests/engine/suite.hpp"
#include "tests/engine/watch.hpp"

namespace perdure::test {
namespace {

struct Lines {
  struct alignas(64) Line {
    p<std::uint64_t> word;
  };
  std::array<Line, 512> line;
  ptr<std::uint64_t> block;
};

/// A pool on a watched medium, and a thread that is stopped before one of its calls.
struct Watched {
  WatchMedium* medium;
  AnyPool<Lines> pool;

  static Watched make(const EngineInfo& e, const Shape& shape) {
    auto made =
        std::make_unique<WatchMedium>(medium::RecordingMedium::make(shape.medium()).value());
    WatchMedium* const raw = made.get();
    return {
        raw,
        AnyPool<Lines>::try_open_on("recording", shape.options(e), std::move(made), true).value()};
  }
  [[nodiscard]] std::uint64_t word(const Recovered& r, std::size_t line) const {
    std::uint64_t value = 0;
    std::memcpy(&value, r.state.root.data() + line * sizeof(Lines::Line), 8);
    return value;
  }
};

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}
/// Waits until the flag is set, or until the other thread has had enough time to reach its stop.
void give_time(const std::atomic<bool>& flag) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

class LogTruncation : public EngineTest {
 protected:
  static Shape shape() {
    Shape s;
    s.threads = 4;
    s.data_bytes = 32 * pool::chunk_bytes;
    return s;
  }
};
std::vector<EngineInfo> with_rings() {
  return engines_that([](const EngineInfo& e) {
    return (is_undo(e) || is_shadow(e)) && isolates(e) && e.tm == "stm";
  });
}
ENGINE_SUITE(LogTruncation, with_rings);

// The header that releases log space is about to be written: another thread must not have that
// space yet. Its log is a third full; then it continues, further than its log reaches, and leaves
// one transaction open.
TEST_P(LogTruncation, IsFreedWhenTheHeaderSaysSo) {
  auto w = Watched::make(GetParam(), shape());
  constexpr std::size_t small = 10, large = 235, open = 180;  // lines
  std::atomic<bool> filled{false}, go{false}, stopped{false}, end{false};
  std::atomic<std::uint64_t> acknowledged{0};
  const auto store = [&](std::size_t first, std::size_t n, std::uint64_t value) {
    w.pool.update([&](auto& tx, Lines& r) {
      for (std::size_t i = first; i < first + n; ++i) tx(r.line[i].word) = value;
    });
    acknowledged = value;
  };
  std::thread other([&] {
    std::uint64_t value = 0;
    for (int i = 0; i < 19; ++i) store(0, small, ++value);
    filled = true;
    wait_for(go);
    if (is_shadow(GetParam())) {
      for (int i = 0; i < 400 && !end; ++i) store(0, small, ++value);
    } else {
      store(0, large, ++value);
      w.pool.update([&](auto& tx, Lines& r) {
        for (std::size_t i = large; i < large + open; ++i) tx(r.line[i].word) = 7;
        stopped = true;
        while (!end) std::this_thread::yield();
      });
    }
    stopped = true;
  });
  wait_for(filled);
  std::vector<std::byte> durable, current;
  std::uint64_t promised = 0;
  w.medium->before_each(
      [&, self = std::this_thread::get_id()](WatchMedium::Call call, std::uint64_t offset) {
        if (std::this_thread::get_id() != self || go || call != WatchMedium::Call::write ||
            offset >= pool::first_ring)
          return;
        go = true;
        give_time(stopped);
        promised = acknowledged;
        durable = w.medium->recording().durable_image();
        current = w.medium->recording().current_image();
      });
  w.pool.checkpoint();
  ASSERT_TRUE(go) << "no header was written";
  end = true;
  other.join();
  w.medium->before_each({});
  for (const auto* image : {&durable, &current}) {
    const Recovered r = recover(GetParam(), *image, shape());
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    EXPECT_GE(w.word(r, 0), promised);
    EXPECT_EQ(w.word(r, 0), w.word(r, small - 1));
    for (std::size_t i = large; i < large + open; ++i)
      ASSERT_EQ(0U, w.word(r, i)) << "of a transaction that never committed, line " << i;
  }
}

/// A transaction is stopped in its commit, before the first call of the medium that is `where`;
/// others continue; then the power is cut. The stopped transaction ends later or, if `ends`, first.
template <class Body, class Where, class Others>
Recovered with_a_stopped_commit(const EngineInfo& e, const Shape& shape, Watched& w, Body body,
                                Where where, Others others, bool ends = false) {
  std::atomic<bool> in_commit{false}, go_on{false};
  std::thread stopped([&] {
    bool done = false;
    w.medium->before_each(
        [&, self = std::this_thread::get_id()](WatchMedium::Call call, std::uint64_t offset) {
          if (std::this_thread::get_id() != self || !done || in_commit || !where(call, offset))
            return;
          in_commit = true;
          wait_for(go_on);
        });
    w.pool.update([&](auto& tx, Lines& r) {
      body(tx, r);
      done = true;
    });
  });
  wait_for(in_commit);
  std::thread(others).join();
  auto image = w.medium->recording().durable_image();
  go_on = true;
  stopped.join();
  w.medium->before_each({});
  if (ends) image = w.medium->recording().durable_image();
  return recover(e, image, shape);
}

// A commit has drawn its id and not ended; a later one has ended. X is below both, so the later
// one's record stays: it alone proves that its id is used.
TEST_P(LogTruncation, IsFreedUpToTheCheckpointIdOnly) {
  auto w = Watched::make(GetParam(), shape());
  std::uint64_t later = 0;
  const Recovered r = with_a_stopped_commit(
      GetParam(), shape(), w, [](auto& tx, Lines& lines) { tx(lines.line[0].word) = 1; },
      [](auto, auto) { return true; },
      [&] {
        later = w.pool.update([](auto& tx, Lines& lines) { tx(lines.line[100].word) = 2; }).id();
        if (is_undo(GetParam())) w.pool.checkpoint();  // shadow's would wait for the first one
      });
  ASSERT_TRUE(r.status.ok()) << r.status.message();
  EXPECT_GE(r.report.last_id, later) << "an id would be given twice";
  EXPECT_EQ(2U, w.word(r, 100));
  EXPECT_EQ(0U, w.word(r, 0));
}

// A commit's record is durable, but the bits of its blocks are not yet in the data region: X must
// not pass it.
TEST_P(LogTruncation, TheCheckpointIdPassesNoCommitWhoseHeapBitsAreNotStored) {
  if (!is_undo(GetParam())) GTEST_SKIP() << "bits are stored before a commit's isolation ends";
  auto w = Watched::make(GetParam(), shape());
  const Recovered r = with_a_stopped_commit(
      GetParam(), shape(), w,
      [](auto& tx, Lines& lines) { tx(lines.block) = tx.template make<std::uint64_t>(5); },
      [data = w.medium->log_bytes()](auto call, std::uint64_t offset) {
        return call == WatchMedium::Call::write && offset >= data;
      },
      [&] { w.pool.checkpoint(); });
  ASSERT_TRUE(r.status.ok()) << r.status.message();
  EXPECT_TRUE(r.problems.empty()) << r.problems.front();
  EXPECT_EQ(1U, r.state.blocks.size()) << "the block of a durable transaction";
}

// A commit is in its fence. It has stored nothing, so a checkpoint waits for no line of it, and its
// heap bits are not applied yet: X must be below it.
TEST_P(LogTruncation, TheCheckpointIdPassesNoCommitThatIsInItsFence) {
  auto w = Watched::make(GetParam(), shape());
  const auto allocate = [](auto& tx, Lines&) { (void)tx.alloc(64); };
  w.pool.update(allocate);  // the span
  w.pool.checkpoint();
  const Recovered r = with_a_stopped_commit(
      GetParam(), shape(), w, allocate,
      [](auto call, std::uint64_t) { return call == WatchMedium::Call::fence; },
      [&] { w.pool.checkpoint(); }, true);
  ASSERT_TRUE(r.status.ok()) << r.status.message();
  EXPECT_EQ(2U, r.state.blocks.size()) << "the blocks of durable transactions";
}

class SyncTruncation : public LogTruncation {};
// With a TM that admits a second thread while the first one is stopped.
std::vector<EngineInfo> with_synchronous_persist() {
  std::vector<EngineInfo> one;
  std::ranges::copy_if(engine::registered(), std::back_inserter(one),
                       [](const EngineInfo& e) { return e.name == "dudetm-sync/stm"; });
  return one;
}
ENGINE_SUITE(SyncTruncation, with_synchronous_persist);

// A commit has drawn its id and not made its record durable; a later one has. Reproduce must not
// apply the later one to the data region and pass the first: the record of the first, which is
// durable when it returns, would then be below X.
TEST_P(SyncTruncation, ReproducePassesNoCommitThatIsInItsFence) {
  auto w = Watched::make(GetParam(), shape());
  std::atomic<bool> in_commit{false}, go_on{false};
  std::thread first([&] {
    bool done = false;
    w.medium->before_each([&, self = std::this_thread::get_id()](WatchMedium::Call, std::uint64_t) {
      if (std::this_thread::get_id() != self || !done || in_commit) return;
      in_commit = true;
      wait_for(go_on);
    });
    w.pool.update([&](auto& tx, Lines& r) {
      tx(r.line[0].word) = 1;
      done = true;
    });
  });
  wait_for(in_commit);
  const std::uint64_t later =
      w.pool.update([](auto& tx, Lines& r) { tx(r.line[100].word) = 2; }).id();
  // It applies the existing records after a pause.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (w.pool.stats().checkpoint_id < later && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_LT(w.pool.stats().checkpoint_id, later);
  go_on = true;
  first.join();
  const auto image = w.medium->recording().durable_image();
  w.medium->before_each({});
  const Recovered r = recover(GetParam(), image, shape());
  ASSERT_TRUE(r.status.ok()) << r.status.message();
  EXPECT_EQ(1U, w.word(r, 0)) << "it was acknowledged";
  EXPECT_EQ(2U, w.word(r, 100));
  if (HasFailure()) std::_Exit(1);  // its close would wait for ever
}

}  // namespace
}  // namespace perdure::test
