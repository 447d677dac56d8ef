// SPDX-License-Identifier: BSD-3-Clause
//
// How a trace is prepared for the replay: which blocks are real, what lies in the arena, which
// threads free which blocks, which threads are merged.
#include "tools/advise/program.hpp"

#include <gtest/gtest.h>

namespace perdure::tool {
namespace {

using engine::TraceKind;
using Op = std::tuple<ReplayKind, std::uint32_t, std::uint32_t, std::uint32_t>;

class Trace {
 public:
  explicit Trace(std::size_t threads) { trace_.threads.resize(threads); }
  Trace& begin(std::size_t thread, bool update = true) {
    at_ = &trace_.threads[thread];
    at_->insert(at_->end(), {engine::begin_word(update, durable), trace_.transactions++});
    return *this;
  }
  Trace& op(TraceKind kind, std::uint64_t at, std::uint64_t second = 0) {
    at_->push_back(engine::trace_word(kind, at));
    if (engine::has_second(kind)) at_->push_back(second);
    return *this;
  }
  [[nodiscard]] ReplayProgram program(std::uint64_t first = 0) const {
    return make_program(trace_, first, trace_.transactions - first);
  }

 private:
  engine::WorkloadTrace trace_;
  std::vector<std::uint64_t>* at_ = nullptr;
};

std::vector<Op> ops(const ReplayThread& t) {
  std::vector<Op> all;
  for (const ReplayOp& o : t.ops) all.emplace_back(o.kind, o.n, o.block, o.word);
  return all;
}

constexpr std::uint64_t a = 0x200000, b = 0x300000, old = 0x100000;

TEST(AdviseProgram, ABlockOfOneThreadIsReal) {
  Trace t(1);
  t.begin(0)
      .op(TraceKind::alloc, a, 100)
      .op(TraceKind::write, a + 8)
      .op(TraceKind::write_words, a + 16, 12);
  t.begin(0)
      .op(TraceKind::read, a + 104)
      .op(TraceKind::free, a, 112)
      .op(TraceKind::alloc, a, 112)
      .op(TraceKind::read, a);
  const ReplayProgram p = t.program();
  ASSERT_EQ(1U, p.threads.size());
  EXPECT_EQ((std::vector<Op>{{ReplayKind::alloc, 100, 1, 0},
                             {ReplayKind::write, 1, 1, 1},
                             {ReplayKind::write_words, 12, 1, 2},
                             {ReplayKind::read, 1, 1, 13},
                             {ReplayKind::free, 0, 1, 0},
                             {ReplayKind::alloc, 112, 2, 0},
                             {ReplayKind::read, 1, 2, 0}}),
            ops(p.threads[0]));
  EXPECT_EQ(3U, p.threads[0].blocks);
  // The second block was not freed.
  EXPECT_EQ(std::vector<std::uint32_t>{2}, p.threads[0].leftover);
  EXPECT_EQ(112U, p.threads[0].leftover_bytes);
  EXPECT_EQ(4096U, p.arena_bytes);  // one page at least
}

TEST(AdviseProgram, OldMemoryIsPagesSideBySide) {
  Trace t(1);
  t.begin(0)
      .op(TraceKind::read, old + 0x5008)
      .op(TraceKind::write, old + 0x10)
      .op(TraceKind::read_words, old + 0x5ff8, 2);
  const ReplayProgram p = t.program();
  // Its pages 0, 5 and 6; a bulk access is never cut.
  EXPECT_EQ((std::vector<Op>{{ReplayKind::read, 1, 0, 513},
                             {ReplayKind::write, 1, 0, 2},
                             {ReplayKind::read_words, 2, 0, 1023}}),
            ops(p.threads[0]));
  EXPECT_EQ(4 * 4096U, p.arena_bytes);
  EXPECT_FALSE(p.folded);
}

TEST(AdviseProgram, ABlockThatAnotherThreadAccessesIsFreedForRealAndLiesInTheArena) {
  Trace t(2);
  t.begin(0).op(TraceKind::alloc, a, 64).op(TraceKind::write, a + 8);
  t.begin(1).op(TraceKind::read, a + 8);
  t.begin(0).op(TraceKind::free, a, 64);
  t.begin(1, false).op(TraceKind::read, a + 8);
  const ReplayProgram p = t.program();
  ASSERT_EQ(2U, p.threads.size());
  EXPECT_EQ(1U, p.arena_shared);
  EXPECT_EQ((std::vector<Op>{{ReplayKind::alloc, 64, 1, 0},
                             {ReplayKind::write, 1, 0, 1},
                             {ReplayKind::free, 0, 1, 0}}),
            ops(p.threads[0]));
  EXPECT_EQ((std::vector<Op>{{ReplayKind::read, 1, 0, 1}, {ReplayKind::read, 1, 0, 1}}),
            ops(p.threads[1]));  // the same word: it still conflicts
  EXPECT_TRUE(p.threads[1].transactions[0].update);
  EXPECT_FALSE(p.threads[1].transactions[1].update);
  EXPECT_TRUE(p.threads[1].transactions[1].durable_view);
}

TEST(AdviseProgram, WhatAnotherThreadOrNobodyAllocatedIsFreedFromBlocksMadeReady) {
  Trace t(2);
  t.begin(0).op(TraceKind::alloc, a, 100).op(TraceKind::write, a);
  t.begin(1).op(TraceKind::free, a, 112).op(TraceKind::free, b, 4096);
  t.begin(0).op(TraceKind::free, old, 112);
  t.begin(1).op(TraceKind::free, b + 8192, 4096);
  const ReplayProgram p = t.program();
  ASSERT_EQ(2U, p.threads.size());
  EXPECT_EQ((std::vector<Op>{{ReplayKind::alloc_stray, 100, 0, 0},
                             {ReplayKind::write, 1, 0, 0},
                             {ReplayKind::free_ready, 0, 0, 0}}),
            ops(p.threads[0]));
  EXPECT_TRUE(p.threads[0].leftover.empty());
  ASSERT_EQ(2U, p.threads[1].ready.size());
  EXPECT_EQ(112U, p.threads[1].ready[0].bytes);
  EXPECT_EQ(1U, p.threads[1].ready[0].each_pass);
  EXPECT_EQ(4096U, p.threads[1].ready[1].bytes);
  EXPECT_EQ(2U, p.threads[1].ready[1].each_pass);
}

TEST(AdviseProgram, AStretchTakesWhatCameBeforeForOldMemory) {
  Trace t(1);
  t.begin(0).op(TraceKind::alloc, a, 64);
  t.begin(0).op(TraceKind::write, a).op(TraceKind::free, a, 64);
  const ReplayProgram p = t.program(1);
  EXPECT_EQ(1U, p.first);
  EXPECT_EQ(1U, p.transactions);
  EXPECT_EQ((std::vector<Op>{{ReplayKind::write, 1, 0, 0}, {ReplayKind::free_ready, 0, 0, 0}}),
            ops(p.threads[0]));
}

TEST(AdviseProgram, ThreadsThatDoNotOverlapAreOneAndIdleOnesAreNone) {
  Trace t(4);
  for (int i = 0; i < 20; ++i) t.begin(0).op(TraceKind::write, old);  // loads, alone
  for (int i = 0; i < 60; ++i)
    t.begin(1 + static_cast<std::size_t>(i) % 2).op(TraceKind::write, old + 8),
        i == 10 ? (void)t.begin(3) : void();
  t.begin(3);  // two transactions, concurrent with the others
  const ReplayProgram p = t.program();
  ASSERT_EQ(2U, p.threads.size());
  std::size_t n = 0;
  for (const auto& thread : p.threads) n += thread.transactions.size();
  EXPECT_EQ(82U, n);
  const ReplayProgram later = t.program(20);
  ASSERT_EQ(2U, later.threads.size());
  EXPECT_EQ(62U, later.threads[0].transactions.size() + later.threads[1].transactions.size());
}

}  // namespace
}  // namespace perdure::tool
