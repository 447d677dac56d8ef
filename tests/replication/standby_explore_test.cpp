// SPDX-License-Identifier: BSD-3-Clause
//
// Power cuts of a standby, at every fence and between: whatever is left, recovery makes one of the
// primary's states, with all that was applied; and its header does not say that this copy has more
// (REPLICA-1).
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "perdure/replication/claims.hpp"
#include "perdure/replication/replica.hpp"
#include "testing/recording_medium.hpp"
#include "tests/replication/other_process.hpp"
#include "tests/replication/power_cuts.hpp"

namespace perdure::replication::test {
namespace {

using namespace std::chrono_literals;
using perdure::test::AnyPool;
using perdure::test::BackedUp;
using perdure::test::contents;
using perdure::test::Program;

class StandbyExplore : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Orders, StandbyExplore, ::testing::Bool(), [](const auto& order) {
  return std::string(order.param ? "pipelined" : "strict");
});

TEST_P(StandbyExplore, EachPowerCutLeavesAStateOfThePrimary) {
  LoggedShape of(GetParam());
  Program program(11);
  const FirstSession first = first_session(of, program);
  {
    auto medium = medium::RecordingMedium::make(of.shape.medium(), first.image).value();
    auto pool = std::move(
        AnyPool<BackedUp>::try_open_on("recording", of.options, std::move(medium), false).value());
    program.knows(pool);
    for (int i = 0; i < 500; ++i) {
      program.step(pool);
      if (i % 10 == 0) pool.update(shipped, [](auto&, BackedUp&) {});
    }
    pool.close();
  }

  auto crash = crash_medium(of, first.image);
  auto* const medium = crash.get();
  crash::Image before(medium->begin_trace(), of.shape.max_data_bytes);
  std::vector<std::uint64_t> ids;  // what the copy has after each step
  std::uint64_t checkpoints = 0;
  medium::Trace trace;
  {
    medium->begin(0);
    auto replica = Replica::open_on(std::move(crash), {}).value();
    ids.push_back(replica->last());
    Stream stream(of.log, first.uuid, place_of(replica->file().header().replication));
    Claims claims("the copy", replica->file().header().replication);
    medium->done(0);
    const Status read =
        stream.read([&](const backup::Frame& frame, const StreamPlace& after) -> Status {
          medium->begin(ids.size());
          Status s;
          if (frame.header.kind == backup::FrameKind::term) {
            s = claims.on_term(frame, after, replica->last());
            if (s.ok()) s = replica->note(claims.words_at(after));
          } else {
            s = replica->apply(frame, claims.words_at(after));
          }
          checkpoints += replica->checkpoint_id() > ids.back() ? 1 : 0;
          ids.push_back(replica->last());
          medium->done(ids.size() - 1);
          return s;
        });
    ASSERT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(replica->last(), program.states().rbegin()->first);
    ASSERT_TRUE(replica->close().ok());
    trace = medium->end_trace();
  }
  EXPECT_GT(ids.size(), 15U);
  EXPECT_GT(checkpoints, 0U) << "the log was full";

  const auto look = [&](auto& tx, const BackedUp& root, const crash::Crash& at,
                        const pool::OpenPool& file) {
    crash::Verdict verdict;
    verdict.digest = digest(contents(tx, root));
    const std::uint64_t id = at.last_id;
    if (id < ids[std::min<std::uint64_t>(at.least, ids.size() - 1)] ||
        id > ids[std::min<std::uint64_t>(at.most, ids.size() - 1)])
      verdict.problem = "transaction " + std::to_string(id) + " is the last, expected " +
                        std::to_string(ids[at.least]) + " to " + std::to_string(ids[at.most]);
    else if (digest(program.at(id)) != verdict.digest)
      verdict.problem = "not the primary's state after " + std::to_string(id);
    else if (file.header().replication.last > id)
      verdict.problem = "the header says that it has transaction " +
                        std::to_string(file.header().replication.last) + ", and it has " +
                        std::to_string(id);
    return verdict;
  };
  recover_all(of, first.base, before, trace, look);
}

}  // namespace
}  // namespace perdure::replication::test
