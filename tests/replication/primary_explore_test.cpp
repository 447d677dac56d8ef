// SPDX-License-Identifier: BSD-3-Clause
//
// Power cuts of a primary, at every fence and between, beside a log that lives on: whatever is
// left, recovery makes one of the program's states, with all that the log has (PRIMARY-1), and what
// it has more is in the pool's own log, for the next opening to append (PRIMARY-2).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "perdure/backup/frame.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/redo.hpp"
#include "tests/replication/other_process.hpp"
#include "tests/replication/power_cuts.hpp"

namespace perdure::replication::test {
namespace {

using perdure::test::AnyPool;
using perdure::test::BackedUp;
using perdure::test::contents;
using perdure::test::Program;

class PrimaryExplore : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Orders, PrimaryExplore, ::testing::Bool(), [](const auto& order) {
  return std::string(order.param ? "pipelined" : "strict");
});

// The trace's threads: the program's, and the one that appends to the replicated log.
constexpr std::uint32_t program_thread = 0, log_thread = 1;

// What a recovered copy is compared with.
struct Look {
  const Program& program;
  const std::vector<std::uint64_t>& in_log;  // its last transaction, after each append
  std::set<std::uint64_t> kept;              // transactions in the pool's own log
  Status read;

  void recovered(pool::OpenPool& file) {
    kept.clear();
    read =
        log::each_record_above(file.medium(), file.header(), 0, [&](const log::RecordView& record) {
          for (std::uint64_t n = record.transactions(); n-- > 0;) kept.insert(record.id() - n);
        });
  }
  crash::Verdict operator()(auto& tx, const BackedUp& root, const crash::Crash& at,
                            const pool::OpenPool& file) const {
    crash::Verdict verdict{{}, digest(contents(tx, root))};
    const auto appends = std::min<std::uint64_t>(at.min_of[log_thread], in_log.size() - 1);
    const std::uint64_t id = at.last_id, has = in_log[appends];
    const auto problem = [&](const std::string& what) {
      if (verdict.problem.empty()) verdict.problem = what;
    };
    if (id < has)
      problem("the log has transactions up to " + std::to_string(has) + ", and this copy up to " +
              std::to_string(id));
    if (digest(program.at(id)) != verdict.digest)
      problem("not the program's state after " + std::to_string(id));
    const std::uint64_t said = file.header().replication.last;
    if (said > id || said > has)
      problem("the header says that the log has transaction " + std::to_string(said) + "; it has " +
              std::to_string(has) + ", and this copy " + std::to_string(id));
    if (!read.ok()) problem(read.message());
    // A recovery that was interrupted may have emptied the pool's log; a primary's has appended the
    // rest before.
    for (auto one = program.states().upper_bound(has);
         at.depth == 0 && one != program.states().end() && one->first <= id; ++one)
      if (!kept.contains(one->first))
        problem("transaction " + std::to_string(one->first) +
                " is neither in the log nor in the pool's own");
    return verdict;
  }
};

TEST_P(PrimaryExplore, EachPowerCutLeavesWhatTheLogHasAndWhatItLacks) {
  LoggedShape of(GetParam());
  Program program(12);
  const FirstSession first = first_session(of, program);

  auto crash = crash_medium(of, first.image);
  auto* const medium = crash.get();
  crash::Image before(medium->begin_trace(), of.shape.max_data_bytes);
  // The last transaction that the log has, after each append.
  std::vector<std::uint64_t> in_log = {program.states().rbegin()->first};
  // A slow one: the pool's log fills with what it lacks.
  of.log->before = [](std::uint64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  of.log->after = [&](std::uint64_t sequence) {
    backup::FrameHeader header;
    std::memcpy(&header, of.simulated->messages[sequence - 1].data(), sizeof header);
    in_log.push_back(std::max(in_log.back(), header.last));
    medium->done(in_log.size() - 1, log_thread);
  };
  medium::Trace trace;
  std::uint64_t checkpoints = 0;
  {
    auto pool = std::move(
        AnyPool<BackedUp>::try_open_on("crash", of.options, std::move(crash), false).value());
    medium->begin(0, program_thread);
    program.knows(pool);
    medium->done(0, program_thread);
    for (std::uint64_t i = 1; i <= 400; ++i) {
      medium->begin(i, program_thread);
      program.step(pool);
      // Now it has all, now it is behind.
      if (i % 40 == 0) pool.update(shipped, [](auto&, BackedUp&) {});
      medium->done(i, program_thread);
    }
    checkpoints = pool.stats().checkpoints;
    pool.close();
    trace = medium->end_trace();
  }
  EXPECT_GT(in_log.size(), 10U);
  EXPECT_GT(checkpoints, 0U) << "the log was full";

  recover_all(of, first.base, before, trace, Look{program, in_log, {}, {}});
}

}  // namespace
}  // namespace perdure::replication::test
