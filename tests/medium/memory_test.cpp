// SPDX-License-Identifier: BSD-3-Clause
//
// What only memory media have: the processor's instructions, the marks that make flush_all cheap,
// the papers' delays. The test checks what was charged for delays; of the clock it only expects
// that at least that much time has passed.
#include <chrono>
#include <cstring>
#include <thread>

#include "perdure/base/cpu.hpp"
#include "perdure/medium/delay.hpp"
#include "perdure/medium/line_marks.hpp"
#include "perdure/medium/runs.hpp"
#include "scratch.hpp"

namespace perdure::medium {
namespace {

using testing::pattern;
using testing::Scratch;

double elapsed_ns(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

TEST(Cpu, every_stream_instruction_copies_lines_and_nothing_else) {
  using base::StreamInstruction;
  for (const auto i :
       {StreamInstruction::sse2, StreamInstruction::avx2, StreamInstruction::avx512}) {
    if (!base::supported(i)) continue;
    SCOPED_TRACE(base::name(i));
    alignas(64) static std::byte to[64 * 12];
    for (const std::size_t lines : {0U, 1U, 2U, 3U, 10U}) {
      const auto from = pattern(64 * 10 + 8, lines);
      std::memset(to, 0, sizeof to);
      // the source need not be aligned
      base::stream_lines(i)(to + 64, from.data() + 8, lines * 64);
      base::store_fence();
      EXPECT_EQ(std::memcmp(to + 64, from.data() + 8, lines * 64), 0);
      EXPECT_EQ(to[63], std::byte{0});
      EXPECT_EQ(to[64 + lines * 64], std::byte{0});
    }
  }
  EXPECT_TRUE(base::supported(base::best_stream()));
}

TEST(Cpu, every_flush_instruction_leaves_the_bytes_alone) {
  using base::FlushInstruction;
  for (const auto i : {FlushInstruction::none, FlushInstruction::clflush,
                       FlushInstruction::clflushopt, FlushInstruction::clwb}) {
    if (!base::supported(i)) continue;
    SCOPED_TRACE(base::name(i));
    auto bytes = pattern(1000, 1);
    const auto before = bytes;
    base::flush_lines(i)(bytes.data() + 3, 10);
    base::store_fence();
    EXPECT_EQ(bytes, before);
  }
  EXPECT_TRUE(base::supported(base::best_flush()));
}

/// No line whose write-back has started is known to be durable.
constexpr auto never = [](LineMarks::Mark) { return false; };

TEST(LineMarksTest, takes_each_marked_line_once) {
  LineMarks marks;
  ASSERT_TRUE(marks.reserve("test", 1 << 20).ok());
  ASSERT_TRUE(marks.cover("test", 64 << 10).ok());
  marks.mark(0, 1);
  marks.mark(60, 8);         // lines 0 and 1
  marks.mark(4096 - 8, 16);  // lines 63 and 64: two pages
  marks.mark(8192, 0);
  const auto mine = [] { return LineMarks::in_flight(3, 7); };
  marks.start(63, mine);
  marks.start(100, mine);  // clean: it remains so
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  const auto note = [&](std::uint64_t first, std::uint64_t count) {
    runs.emplace_back(first, count);
  };
  unsigned asked = 0;
  const auto over = [&](LineMarks::Mark mark) {
    ++asked;
    return LineMarks::slot_of(mark) == 3 && LineMarks::over(mark, 9);
  };
  marks.take_all(over, note, [] {});
  EXPECT_EQ(runs, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 2}, {64, 1}}));
  EXPECT_EQ(asked, 1U);
  runs.clear();
  marks.take_all(never, note, [] {});
  EXPECT_TRUE(runs.empty());
  ASSERT_TRUE(marks.cover("test", 1 << 20).ok());
  marks.mark((1 << 20) - 64, 64);
  marks.take_all(never, note, [] {});
  EXPECT_EQ(runs.size(), 1U);
}

TEST(LineMarksTest, a_write_back_is_over_when_its_thread_has_begun_two_more_fences) {
  for (const int slot :
       {0, 1, 100, base::max_threads - 1, base::background_slot, base::slot_count - 1})
    for (std::uint64_t begun = 0; begun < 300; ++begun) {
      const LineMarks::Mark mark = LineMarks::in_flight(slot, begun);
      ASSERT_NE(mark, LineMarks::clean);
      ASSERT_NE(mark, LineMarks::dirty);
      ASSERT_EQ(LineMarks::slot_of(mark), slot);
      ASSERT_FALSE(LineMarks::over(mark, begun));
      ASSERT_FALSE(LineMarks::over(mark, begun + 1));
      for (std::uint64_t more = 2; more < 100; ++more)
        ASSERT_TRUE(LineMarks::over(mark, begun + more));
    }
}

TEST(LineMarksTest, no_store_is_missed_by_a_taker_that_runs_beside_it) {
  // MARK-1, MARK-4: a store whose mark was made during take_all() is taken with its new value, or
  // its mark remains for the next.
  LineMarks marks;
  ASSERT_TRUE(marks.reserve("test", 64 << 10).ok());
  ASSERT_TRUE(marks.cover("test", 64 << 10).ok());
  constexpr std::uint64_t rounds = 2000;
  alignas(64) std::atomic<std::uint64_t> data{0};
  alignas(64) std::atomic<std::uint64_t> begun{0}, ended{0};
  std::uint64_t taken = 0, missed = 0;
  const auto take = [&](std::uint64_t /*first*/, std::uint64_t /*count*/) {
    taken = data.load(std::memory_order_relaxed);
  };
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      while (begun.load(std::memory_order_acquire) < i) std::this_thread::yield();
      data.store(i * 2 - 1, std::memory_order_relaxed);
      marks.mark(128, 8);
      data.store(i * 2, std::memory_order_relaxed);
      marks.mark(128, 8);
      ended.store(i, std::memory_order_release);
    }
  });
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    begun.store(i, std::memory_order_release);
    while (ended.load(std::memory_order_acquire) < i) {
      marks.take_all(never, take, [] {});
      std::this_thread::yield();
    }
    marks.take_all(never, take, [] {});
    missed += taken != i * 2 ? 1 : 0;
  }
  writer.join();
  EXPECT_EQ(missed, 0U);
}

TEST(FlushAll, on_memory_costs_what_was_stored_and_not_flushed) {
  const Scratch scratch;
  OpenMedium how;
  how.path = scratch.path();
  how.kind = "emulated";
  how.create = true;
  how.log_bytes = 2 << 20;
  how.data_bytes = 8 << 20;
  auto m = open_medium(how).value();
  const auto flushed = [&] {
    const Counters before = m->counters();
    EXPECT_TRUE(m->flush_all().ok());
    return (m->counters() - before).flushed_lines;
  };
  EXPECT_EQ(flushed(), 0U);
  const std::uint64_t word = 1;
  for (std::uint64_t i = 0; i < 100; ++i) m->store((4 << 20) + i * 4096, &word, 8);
  m->flush(4 << 20, 8);  // one of the marked lines
  EXPECT_EQ(flushed(), 99U);
  EXPECT_EQ(flushed(), 0U);
}

TEST(RunsTest, merge_what_touches_and_overflow_to_all) {
  Runs r;
  EXPECT_TRUE(r.empty());
  for (const auto& [a, b] : {std::pair{5, 6}, {6, 8}, {1, 2}, {7, 9}, {2, 3}})
    r.add(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
  r.merge();
  ASSERT_EQ(r.size(), 2U);
  EXPECT_EQ(r.blocks(), 2U + 4U);
  r.clear();
  for (std::uint64_t i = 0; i < 1000; ++i) r.add(i * 2, i * 2 + 1);
  EXPECT_TRUE(r.all());
  EXPECT_EQ(r.blocks(), 1000U);
  r.clear();
  for (std::uint64_t i = 1000; i > 0; --i) r.add(i, i + 1);  // merged when the list is full
  EXPECT_FALSE(r.all());
}

class Delay : public ::testing::Test {
 protected:
  static std::uint64_t ticks(double ns) { return static_cast<std::uint64_t>(ns * ticks_per_ns()); }
};

TEST_F(Delay, rewind_charges_a_line_and_consecutive_writes_to_one_line_once) {
  ModelDelay d({.write_ns = 1000, .merge_over_fences = true});
  const std::uint64_t line = ticks(1000);
  d.written(7, 1);
  EXPECT_EQ(d.charged(), line);
  d.written(7, 1);
  d.fenced();
  d.written(7, 1);
  EXPECT_EQ(d.charged(), line) << "one line, again and again";
  d.written(7, 3);
  EXPECT_EQ(d.charged(), 3 * line) << "two more";
  d.written(7, 1);
  EXPECT_EQ(d.charged(), 4 * line) << "another line came between";
  d.written(7, 0);
  EXPECT_EQ(d.charged(), 4 * line);
}

TEST_F(Delay, blurred_charges_every_flush_operation) {
  ModelDelay d({.write_ns = 1000});
  d.written(7, 1);
  d.fenced();
  d.written(7, 1);
  EXPECT_EQ(d.charged(), 2 * ticks(1000));
}

TEST_F(Delay, one_threads_writes_do_not_merge_with_anothers) {
  ModelDelay d({.write_ns = 1000});
  d.written(7, 1);
  std::thread([&] {
    const std::uint64_t before = d.charged();
    d.written(7, 1);
    EXPECT_EQ(d.charged() - before, ticks(1000));
  }).join();
}

TEST_F(Delay, dudetm_charges_the_larger_of_latency_and_transfer) {
  ModelDelay d({.latency_cycles = 1000, .bandwidth_gb_s = 1});
  d.written(0, 1);
  d.fenced();
  EXPECT_EQ(d.charged(), 1000U) << "64 bytes at 1 GB/s take less than the latency";
  d.written(0, 10000);
  d.written(5, 10000);
  d.fenced();
  EXPECT_NEAR(static_cast<double>(d.charged() - 1000), 20000 * 64 * ticks_per_ns(), 2);
  const std::uint64_t before = d.charged();
  d.fenced();
  EXPECT_EQ(d.charged() - before, 1000U) << "the bytes were paid for";
}

TEST_F(Delay, charged_time_really_goes_by) {
  ModelDelay d({.write_ns = 100000});
  EXPECT_GT(elapsed_ns([&] { d.written(0, 20); }), 20 * 100000 * 0.5);
  ModelDelay e({.latency_cycles = 3000000});
  EXPECT_GT(elapsed_ns([&] { e.fenced(); }) * ticks_per_ns(), 3000000 * 0.5);
}

TEST_F(Delay, a_fence_may_take_time_of_its_own_in_every_model) {
  ModelDelay d({.write_ns = 1000, .fence_ns = 3000, .merge_over_fences = true});
  d.fenced();
  EXPECT_EQ(d.charged(), ticks(3000)) << "with nothing to wait for";
  d.written(7, 1);
  d.fenced();
  d.written(7, 1);
  d.fenced();
  EXPECT_EQ(d.charged(), 3 * ticks(3000) + ticks(1000)) << "beside the line, which stays one write";
  ModelDelay e({.latency_cycles = 1000, .fence_ns = 3000});
  e.fenced();
  EXPECT_EQ(e.charged(), 1000 + ticks(3000));
  EXPECT_FALSE((Delays{.fence_ns = 1}.none()));
}

TEST_F(Delay, softwrap_fills_eight_lines_then_waits_and_drains_at_the_fence) {
  ModelDelay d({.drain_ns = 2000000});
  EXPECT_GT(elapsed_ns([&] {
              for (std::uint64_t i = 0; i < 12; ++i) d.written(2 * i, 1);
            }),
            4 * 2000000 * 0.5)
      << "the ninth line waits for the first to leave";
  EXPECT_GT(elapsed_ns([&] { d.fenced(); }), 7 * 2000000 * 0.5)
      << "eight lines are queued, one of them partly drained";
}

TEST_F(Delay, softwrap_lets_a_line_wait_for_room_and_no_longer) {
  constexpr std::uint32_t a_line = 50'000'000;  // ns
  ModelDelay d({.drain_ns = a_line});
  EXPECT_LT(elapsed_ns([&] {
              for (std::uint64_t i = 0; i < 8; ++i) d.written(2 * i, 1);
            }),
            a_line * 0.5)
      << "there is room for eight";
  // The eight leave 50 ms apart, whatever the thread does meanwhile.
  std::this_thread::sleep_for(std::chrono::milliseconds(450));
  EXPECT_LT(elapsed_ns([&] {
              for (std::uint64_t i = 100; i < 108; ++i) d.written(2 * i, 1);
            }),
            a_line * 0.5)
      << "the first eight are gone";
  EXPECT_LT(elapsed_ns([&] { d.written(200, 1); }), a_line * 0.5) << "it is still queued";
  EXPECT_GT(elapsed_ns([&] { d.fenced(); }), 7 * a_line * 0.5);
  EXPECT_LT(elapsed_ns([&] { d.fenced(); }), a_line * 0.5) << "nothing is left";
}

// What other threads write between a line and its fence does not make the line wait as if it had
// come after them.
TEST_F(Delay, softwrap_does_not_charge_a_line_for_what_others_have_written_since) {
  constexpr std::uint32_t a_line = 50'000'000;  // ns
  ModelDelay d({.drain_ns = a_line});
  d.written(0, 1);
  std::thread([&] {
    for (std::uint64_t i = 0; i < 8; ++i) d.written(100 + 2 * i, 1);
    d.fenced();
  }).join();  // 8 lines of 50 ms
  const double fence = elapsed_ns([&] { d.fenced(); });
  EXPECT_LT(fence, 3.0 * a_line) << "its line enters an empty queue";
  EXPECT_GT(fence, 0.5 * a_line);
}

TEST_F(Delay, softwrap_with_a_buffer_each_does_not_wait_for_another_threads_lines) {
  ModelDelay d({.drain_ns = 100000000, .buffer_each = true});
  std::thread([&] {
    for (std::uint64_t i = 0; i < 8; ++i) d.written(2 * i, 1);
  }).join();
  EXPECT_LT(elapsed_ns([&] {
              for (std::uint64_t i = 100; i < 108; ++i) d.written(2 * i, 1);
            }),
            100000000 * 0.5)
      << "its own buffer was empty";
  EXPECT_GT(elapsed_ns([&] { d.fenced(); }), 7 * 100000000 * 0.5);
}

TEST_F(Delay, names_are_the_papers_and_others_are_refused) {
  EXPECT_TRUE(Delays::named("none").value().none());
  EXPECT_EQ(Delays::named("rewind").value().write_ns, 150U);
  EXPECT_EQ(Delays::named("blurred").value().write_ns, 150U);
  EXPECT_EQ(Delays::named("dudetm").value().latency_cycles, 1000U);
  EXPECT_EQ(Delays::named("dudetm-3500").value().latency_cycles, 3500U);
  EXPECT_EQ(Delays::named("dudetm-3500+bandwidth=16").value().bandwidth_gb_s, 16.0);
  EXPECT_EQ(Delays::named("dudetm+bandwidth=0").code(), Code::invalid);
  EXPECT_EQ(Delays::named("softwrap").value().drain_ns, 1000U);
  EXPECT_EQ(Delays::named("rewind").value().fence_ns, 0U);
  const Delays slow = Delays::named("rewind+fence=500").value();
  EXPECT_EQ(slow.fence_ns, 500U);
  EXPECT_EQ(slow.write_ns, 150U);
  EXPECT_TRUE(slow.merge_over_fences);
  EXPECT_EQ(Delays::named("none+fence=1000000").value().fence_ns, 1000000U);
  const Delays all = Delays::named("blurred+wbinvd+write=35+fence=7").value();
  EXPECT_EQ(all.write_ns, 35U);
  EXPECT_EQ(all.fence_ns, 7U);
  EXPECT_TRUE(all.flush_all_is_one);
  EXPECT_FALSE(Delays::named("blurred").value().flush_all_is_one);
  EXPECT_TRUE(Delays::named("softwrap+each").value().buffer_each);
  EXPECT_FALSE(Delays::named("softwrap").value().buffer_each);
  for (const char* name : {"rewind+", "rewind+fence", "rewind+fence=", "rewind+fence=-1",
                           "rewind+fence=5ns", "rewind+fence=1000001", "rewind+fence=99999999999",
                           "rewind+fence=1+fence=2", "rewind+drain=1", "fast+fence=1", "+fence=1",
                           "rewind+write=", "rewind+write=1+fence=1+write=1", "blurred+wbinvd=1",
                           "blurred+wbinvd+wbinvd", "softwrap+each=1"})
    EXPECT_EQ(Delays::named(name).code(), Code::invalid) << name;
  const auto bad = Delays::named("fast");
  EXPECT_EQ(bad.code(), Code::invalid);
  EXPECT_NE(bad.status().message().find("softwrap"), std::string::npos) << bad.status().message();
}

}  // namespace
}  // namespace perdure::medium
