// SPDX-License-Identifier: BSD-3-Clause
//
// The crash medium promises no more than the media that it represents: a SIGKILL interrupts a store
// or a fence, a killed process loses the log that it had staged for a file, its marks are lost,
// too, other threads see half of a long store, and a flush_all consists of steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "testing/crash_medium.hpp"
#include "testing/persistency.hpp"

namespace perdure::medium {
namespace {

using Kind = TraceEvent::Kind;
constexpr std::uint64_t log_bytes = 16 << 10, data_bytes = 16 << 10;

std::unique_ptr<CrashMedium> make(bool like_a_file = false, std::function<void(Step)> step = {}) {
  CrashOptions o;
  o.log_bytes = log_bytes;
  o.data_bytes = o.max_data_bytes = data_bytes;
  o.fence_is_sync = like_a_file;
  o.append_unit = like_a_file ? 4096 : 64;
  o.step = std::move(step);
  return CrashMedium::make(o).value();
}
std::uint64_t word(const Medium& m, std::uint64_t offset) {
  std::uint64_t v = 0;
  std::memcpy(&v, m.at(offset), 8);
  return v;
}
void put(Medium& m, std::uint64_t offset, std::uint64_t value) { m.store(offset, &value, 8); }
const std::array<std::uint64_t, 16> counting = {1, 2,  3,  4,  5,  6,  7,  8,
                                                9, 10, 11, 12, 13, 14, 15, 16};
std::vector<Kind> kinds(const Trace& trace) {
  std::vector<Kind> all;
  for (const TraceEvent& e : trace.events) all.push_back(e.kind);
  return all;
}

TEST(CrashMediumTest, AKillWithinAStoreLeavesItsFirstWords) {
  for (const std::uint64_t part : {0, 1, 5, 15, 16, 100}) {
    auto m = make();
    (void)m->begin_trace();
    m->kill_after(1, part);
    put(*m, log_bytes, 7);
    m->store(log_bytes + 64, counting.data(), sizeof counting);
    ASSERT_FALSE(m->survives());
    put(*m, log_bytes + 8, 8);  // what it does now has no effect
    auto heir = m->heir();
    EXPECT_EQ(7U, word(*heir, log_bytes));
    EXPECT_EQ(0U, word(*heir, log_bytes + 8));
    // Never all of it: then it would not have been interrupted.
    const std::uint64_t stored = std::min<std::uint64_t>(part, 15);
    for (std::uint64_t i = 0; i < 16; ++i)
      EXPECT_EQ(i < stored ? i + 1 : 0, word(*heir, log_bytes + 64 + i * 8)) << part;
    const Trace trace = heir->end_trace();
    EXPECT_EQ(stored == 0 ? (std::vector{Kind::store, Kind::killed})
                          : (std::vector{Kind::store, Kind::store, Kind::killed}),
              kinds(trace));
  }
}

TEST(CrashMediumTest, MarksDieWithTheirProcess) {
  auto m = make();
  put(*m, log_bytes, 7);
  auto heir = m->heir();
  const Counters before = heir->counters();
  ASSERT_TRUE(heir->flush_all().ok());
  EXPECT_EQ(0U, (heir->counters() - before).flushed_lines)
      << "a new process does not know what an older one stored";
}

TEST(CrashMediumTest, OnAFileAKilledProcessTakesTheStagedLogWithIt) {
  auto m = make(true);
  (void)m->begin_trace();
  put(*m, 0, 1);
  m->flush(0, 8);
  put(*m, 64, 2);  // in a block that is written: it is written, too
  ASSERT_TRUE(m->fence().ok());
  put(*m, 0, 3);
  put(*m, 4096, 4);
  m->flush(4096, 8);
  put(*m, log_bytes, 5);
  auto heir = m->heir();
  EXPECT_EQ(1U, word(*heir, 0));
  EXPECT_EQ(2U, word(*heir, 64));
  EXPECT_EQ(0U, word(*heir, 4096));
  EXPECT_EQ(5U, word(*heir, log_bytes))
      << "the data region is mapped from the file: the kernel has it";
  // And no power cut restores what was lost.
  Trace trace = heir->end_trace();
  Image image(std::vector<std::uint64_t>((log_bytes + data_bytes) / 8), data_bytes);
  Persistency pending(image);
  for (const TraceEvent& e : trace.events) pending.apply(trace, e);
  EXPECT_EQ(1U, image.word(0));
  EXPECT_FALSE(pending.pending(0));
  EXPECT_TRUE(pending.pending(8));  // in the file's cache, and maybe on the disk
  EXPECT_FALSE(pending.pending(4096 / 8));
  EXPECT_TRUE(pending.pending(log_bytes / 8));
}

TEST(CrashMediumTest, OnAFileAFenceThatIsKilledHasWrittenSomeOfItsBlocks) {
  for (const std::uint64_t part : {0, 1, 2}) {
    auto m = make(true);
    for (const std::uint64_t block : {0, 1}) {
      put(*m, block * 4096, 7);
      m->flush(block * 4096, 8);
    }
    m->kill_after(0, part);
    ASSERT_TRUE(m->fence().ok());
    auto heir = m->heir();
    for (const std::uint64_t block : {0, 1})
      EXPECT_EQ(block < part ? 7U : 0U, word(*heir, block * 4096)) << part;
  }
}

TEST(CrashMediumTest, OnMemoryAKilledProcessLeavesWhatItStored) {
  auto m = make();
  put(*m, 0, 1);
  m->stream(64, counting.data(), 64);
  auto heir = m->heir();
  EXPECT_EQ(1U, word(*heir, 0));
  EXPECT_EQ(8U, word(*heir, 64 + 56));
}

TEST(CrashMediumTest, AFlushAllIsWriteBacksAndAFence) {
  std::vector<Step> steps;
  auto m = make(false, [&](Step s) { steps.push_back(s); });
  put(*m, log_bytes, 1);
  put(*m, log_bytes + 8192, 2);
  (void)m->begin_trace();
  steps.clear();
  ASSERT_TRUE(m->flush_all().ok());
  EXPECT_EQ((std::vector{Kind::flush, Kind::flush, Kind::fence}), kinds(m->end_trace()));
  EXPECT_EQ((std::vector{Step::take, Step::take, Step::write_back, Step::write_back, Step::fence}),
            steps);
}

TEST(CrashMediumTest, OtherThreadsMayRunWithinAStoreOfMoreThanALine) {
  for (const bool stream : {false, true}) {
    CrashMedium* raw = nullptr;
    unsigned half = 0;
    auto m = make(false, [&](Step) {
      half +=
          raw != nullptr && word(*raw, log_bytes) != 0 && word(*raw, log_bytes + 120) == 0 ? 1 : 0;
    });
    raw = m.get();
    if (stream) {
      m->stream(log_bytes, counting.data(), sizeof counting);
    } else {
      m->store(log_bytes, counting.data(), sizeof counting);
    }
    EXPECT_EQ(1U, half);
    EXPECT_EQ(16U, word(*m, log_bytes + 120));
  }
}

}  // namespace
}  // namespace perdure::medium
