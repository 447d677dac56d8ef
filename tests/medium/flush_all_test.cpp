// SPDX-License-Identifier: BSD-3-Clause
//
// flush_all while other threads store: when it returns, every store that was made before it began
// is durable, even if another thread has begun to write it back and has not waited. Threads are
// stopped between the steps of marked.hpp, at every step in turn and by seeds; the model says what
// is durable then (persistency.hpp). The code is the same that real memory runs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "perdure/medium/line_marks.hpp"
#include "testing/recording_medium.hpp"
#include "tests/medium/scratch.hpp"
#if !defined(__SANITIZE_THREAD__)
#include "tests/crash/scheduler.hpp"
#endif

namespace perdure::medium {
namespace {

constexpr std::uint64_t log_bytes = 64 << 10, data_bytes = 64 << 10, ring_at = 8192,
                        ring_bytes = 4096;

/// Threads that stop before a step and wait there.
class Stops {
 public:
  /// Runs f on a new thread; returns when the thread is before its `nth` step of this kind, or has
  /// ended.
  void run_until(Step step, unsigned nth, std::function<void()> f) {
    std::unique_lock lock(mutex_);
    step_ = step;
    nth_ = nth;
    stopped_ = ended_ = go_on_ = false;
    thread_ = std::thread([this, f = std::move(f)] {
      mine = true;
      f();
      mine = false;
      const std::lock_guard ended(mutex_);
      ended_ = true;
      changed_.notify_all();
    });
    changed_.wait(lock, [this] { return stopped_ || ended_; });
  }
  [[nodiscard]] bool stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      go_on_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  /// The medium calls it at each step.
  void at(Step step) {
    if (!mine) return;
    std::unique_lock lock(mutex_);
    if (stopped_ || step != step_ || --nth_ != 0) return;
    stopped_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return go_on_; });
  }

 private:
  static thread_local bool mine;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  Step step_ = Step::fence;
  unsigned nth_ = 0;
  bool stopped_ = false, ended_ = false, go_on_ = false;
};
thread_local bool Stops::mine = false;

class FlushAll : public ::testing::Test {
 protected:
  void put(std::uint64_t offset, std::uint64_t value) const {
    m->store(offset, &value, sizeof value);
  }
  [[nodiscard]] std::uint64_t written_back_by(const std::function<void()>& f) const {
    const Counters before = m->counters();
    f();
    return (m->counters() - before).flushed_lines;
  }
  void flush_all() const { ASSERT_TRUE(m->flush_all().ok()); }

  Stops stops;
  std::unique_ptr<RecordingMedium> m =
      RecordingMedium::make({.log_bytes = log_bytes,
                             .data_bytes = data_bytes,
                             .max_data_bytes = 2 * data_bytes,
                             .step = [this](Step step) { stops.at(step); }})
          .value();
};

/// The three ways to start the write-back of the line at `offset`.
struct Way {
  const char* name;
  std::uint64_t offset;
  void (*flush)(Medium& m, const RingMap& ring);
};
const std::array<Way, 3> flushes = {{
    {"flush", log_bytes + 128, [](Medium& m, const RingMap&) { m.flush(log_bytes + 128, 8); }},
    {"flush_lines", log_bytes + 256,
     [](Medium& m, const RingMap&) {
       const std::array<std::uint64_t, 2> lines = {1, 4};
       m.flush_lines(log_bytes, lines);
     }},
    {"flush_ring", ring_at,
     [](Medium& m, const RingMap& ring) { m.flush_ring(ring, 5 * ring_bytes - 64, 128); }},
}};

TEST_F(FlushAll, CoversALineWhoseMarkAnotherThreadHasTakenAndNotYetWrittenBack) {
  const RingMap ring = m->map_ring(ring_at, ring_bytes).value();
  for (const Way& way : flushes) {
    put(way.offset, 1);
    stops.run_until(Step::write_back, 1, [&] { way.flush(*m, ring); });
    ASSERT_TRUE(stops.stopped());
    flush_all();
    EXPECT_TRUE(m->is_durable(way.offset, 8)) << way.name;
    stops.finish();
  }
}

TEST_F(FlushAll, CoversALineThatAnotherThreadHasWrittenBackAndNotFenced) {
  const RingMap ring = m->map_ring(ring_at, ring_bytes).value();
  for (const Way& way : flushes) {
    put(way.offset, 2);
    stops.run_until(Step::fence, 1, [&] {
      way.flush(*m, ring);
      ASSERT_TRUE(m->fence().ok());  // stops after it has announced its fence, and before the fence
    });
    ASSERT_TRUE(stops.stopped());
    flush_all();
    EXPECT_TRUE(m->is_durable(way.offset, 8)) << way.name;
    stops.finish();
  }
}

TEST_F(FlushAll, CoversALineThatAThreadWroteBackBeforeItEnded) {
  put(log_bytes, 3);
  std::thread([&] { m->flush(log_bytes, 8); }).join();
  flush_all();
  EXPECT_TRUE(m->is_durable(log_bytes, 8));
}

TEST_F(FlushAll, CoversAStoreThatCameAfterTheOtherThreadsWriteBack) {
  put(log_bytes, 4);
  stops.run_until(Step::fence, 1, [&] {
    m->flush(log_bytes, 8);
    put(log_bytes + 8, 5);
    ASSERT_TRUE(m->fence().ok());
  });
  ASSERT_TRUE(stops.stopped());
  flush_all();
  EXPECT_TRUE(m->is_durable(log_bytes, 16));
  stops.finish();
}

// It must not write back lines that are known to be durable, nor those of its own thread.
TEST_F(FlushAll, WritesBackNothingTwiceThatItsOwnThreadWroteBack) {
  for (std::uint64_t i = 0; i < 100; ++i) put(log_bytes + i * 64, i);
  for (std::uint64_t i = 0; i < 100; i += 2) m->flush(log_bytes + i * 64, 8);
  EXPECT_EQ(50U, written_back_by([&] { flush_all(); }));
  EXPECT_TRUE(m->is_durable(log_bytes, data_bytes));
  EXPECT_EQ(0U, written_back_by([&] { flush_all(); }));
}

TEST_F(FlushAll, WritesBackWhatAnotherThreadHasFencedOnlyIfThatWasItsLastFence) {
  for (unsigned fences = 0; fences < 400; ++fences) {
    put(log_bytes, fences);
    std::thread([&] {
      m->flush(log_bytes, 8);
      for (unsigned i = 0; i < fences; ++i) ASSERT_TRUE(m->fence().ok());
    }).join();
    const std::uint64_t lines = written_back_by([&] { flush_all(); });
    EXPECT_TRUE(m->is_durable(log_bytes, 8));
    // A second fence proves that the first one had ended. The count is kept modulo 128: a line may
    // then be written back without need.
    if (fences % 128 < 2) {
      EXPECT_EQ(1U, lines) << fences;
    } else {
      EXPECT_EQ(0U, lines) << fences;
    }
  }
}

TEST_F(FlushAll, LeavesWhatAnotherThreadStoredPastTheCacheToThatThreadsFence) {
  const auto line = testing::pattern(64, 1);
  stops.run_until(Step::fence, 1, [&] {
    m->stream(log_bytes + 64, line.data(), 64);
    ASSERT_TRUE(m->fence().ok());
  });
  ASSERT_TRUE(stops.stopped());
  m->stream(log_bytes + 128, line.data(), 64);
  flush_all();
  EXPECT_TRUE(m->is_durable(log_bytes + 128, 64)) << "its own";
  EXPECT_FALSE(m->is_durable(log_bytes + 64, 64))
      << "no instruction of this thread reaches another's write-combining buffers";
  stops.finish();
  EXPECT_TRUE(m->is_durable(log_bytes + 64, 64));
}

TEST_F(FlushAll, CoversWhatLiesInARangeThatWasGrown) {
  ASSERT_TRUE(m->grow(2 * data_bytes).ok());
  put(log_bytes + 2 * data_bytes - 8, 7);
  flush_all();
  EXPECT_TRUE(m->is_durable(log_bytes + 2 * data_bytes - 8, 8));
}

// A file's log is staged, and a thread that fences has taken its blocks' dirty bits before it has
// written the blocks: flush_all waits for it.
TEST(FlushAllOnAFile, EveryStoreMadeBeforeItIsInTheFileAfterIt) {
  constexpr std::uint64_t writers = 2, rounds = 150;
  for (const bool direct : {true, false}) {
    const testing::Scratch scratch;
    OpenMedium how;
    how.path = scratch.path();
    how.kind = "file";
    how.create = true;
    how.direct = direct;
    how.log_bytes = how.data_bytes = region_align;
    auto m = open_medium(how).value();
    std::array<std::atomic<std::uint64_t>, writers> made{};
    std::atomic<bool> stop{false};
    std::vector<std::thread> all;
    for (std::uint64_t t = 0; t < writers; ++t)
      all.emplace_back([&, t] {
        for (std::uint64_t i = 1; !stop; ++i) {
          m->store(8192 + t * 64, &i, 8);  // both lines are in one block
          made[t] = i;
          m->flush(8192 + t * 64, 8);
          ASSERT_TRUE(m->fence().ok());
        }
      });
    const int fd = ::open(how.path.c_str(), O_RDONLY | O_CLOEXEC);
    std::uint64_t missed = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      const std::array<std::uint64_t, writers> before = {made[0], made[1]};
      ASSERT_TRUE(m->flush_all().ok());
      for (std::uint64_t t = 0; t < writers; ++t) {
        std::uint64_t in_file = 0;
        ASSERT_EQ(8, ::pread(fd, &in_file, 8, static_cast<off_t>(8192 + t * 64)));
        missed += in_file < before[t] ? 1 : 0;
      }
    }
    stop = true;
    for (auto& t : all) t.join();
    ::close(fd);
    EXPECT_EQ(0U, missed) << (direct ? "direct" : "buffered");
  }
}

#if !defined(__SANITIZE_THREAD__)
// Threads store, write back, fence and flush everything as a seed decides; each word has one
// writer, whose values rise.
TEST(FlushAllBySeeds, EveryStoreMadeBeforeItIsDurableAfterIt) {
  constexpr std::size_t threads = 3, lines = 6;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    auto m =
        RecordingMedium::make(
            {.log_bytes = 4096, .data_bytes = 4096, .step = [](Step) { test::Scheduler::point(); }})
            .value();
    // By line and writer: stores that have returned.
    std::array<std::array<std::uint64_t, threads>, lines> made{};
    std::mutex one_at_a_time;
    std::uint64_t missed = 0;
    test::Scheduler::start(seed);
    {
      std::vector<std::thread> all;
      all.reserve(threads);
      for (std::size_t t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
          Random random(seed * threads + t);
          for (std::uint64_t i = 1; i <= 60; ++i) {
            const std::uint64_t line = random() % lines, offset = 4096 + line * 64 + t * 8,
                                kind = random() % 16;
            if (kind < 7) {
              m->store(offset, &i, 8);
              made[line][t] = i;
            } else if (kind < 11) {
              m->flush(4096 + line * 64, 64);
            } else if (kind < 14) {
              ASSERT_TRUE(m->fence().ok());
            } else {
              const std::lock_guard lock(one_at_a_time);
              const auto before = made;
              ASSERT_TRUE(m->flush_all().ok());
              const auto image = m->durable_image();
              for (std::size_t l = 0; l < lines; ++l)
                for (std::size_t w = 0; w < threads; ++w) {
                  std::uint64_t durable = 0;
                  std::memcpy(&durable, image.data() + 4096 + l * 64 + w * 8, 8);
                  missed += durable < before[l][w] ? 1 : 0;
                }
            }
          }
        });
      for (auto& t : all) t.join();
    }
    test::Scheduler::stop();
    ASSERT_EQ(0U, missed) << "stores that flush_all did not make durable, seed " << seed;
  }
}
#endif

}  // namespace
}  // namespace perdure::medium
