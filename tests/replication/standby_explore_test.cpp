// SPDX-License-Identifier: BSD-3-Clause
//
// Power cuts of a standby, at every fence and between: whatever is left, recovery makes one of the
// primary's states, with all that was applied; and its header does not say that this copy has more
// (REPLICA-1).
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/replication/claims.hpp"
#include "perdure/replication/replica.hpp"
#include "testing/crash_medium.hpp"
#include "testing/recording_medium.hpp"
#include "testing/recovered.hpp"
#include "tests/backup/history.hpp"
#include "tests/replication/other_process.hpp"
#include "tests/replication/shared_log.hpp"
#include "tests/replication/simulated_log.hpp"

namespace perdure::replication::test {
namespace {

using namespace std::chrono_literals;
using perdure::test::AnyPool;
using perdure::test::BackedUp;
using perdure::test::contents;
using perdure::test::Program;
using perdure::test::Shape;

class StandbyExplore : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Orders, StandbyExplore, ::testing::Bool(), [](const auto& order) {
  return std::string(order.param ? "pipelined" : "strict");
});

TEST_P(StandbyExplore, EachPowerCutLeavesAStateOfThePrimary) {
  Shape shape;
  shape.like_a_file = GetParam();
  shape.threads = 2;
  shape.ring_bytes = GetParam() ? 128 << 10 : 48 << 10;
  shape.max_data_bytes = 256 * pool::chunk_bytes;
  const auto& shadow = *engine::find_instance("shadow");
  const auto simulated = std::make_shared<SimulatedLog>(1);
  const auto log = std::make_shared<SharedLog>(simulated);
  Options options = shape.options(shadow);
  options.replicate.service = log;
  Program program(11);
  std::vector<std::byte> image;  // that the standby begins with
  std::uint64_t base = 0;
  std::uint8_t uuid[16];
  {
    auto medium = medium::RecordingMedium::make(shape.medium()).value();
    auto* const recording = medium.get();
    auto pool = std::move(
        AnyPool<BackedUp>::try_open_on("recording", options, std::move(medium), true).value());
    for (int i = 0; i < 10; ++i) program.step(pool);
    base = pool.header().base;
    std::memcpy(uuid, pool.header().uuid, sizeof uuid);
    pool.close();
    image = recording->current_image();
  }
  {
    auto medium = medium::RecordingMedium::make(shape.medium(), image).value();
    auto pool = std::move(
        AnyPool<BackedUp>::try_open_on("recording", options, std::move(medium), false).value());
    program.knows(pool);
    for (int i = 0; i < 500; ++i) {
      program.step(pool);
      if (i % 10 == 0) pool.update(shipped, [](auto&, BackedUp&) {});
    }
    pool.close();
  }

  medium::CrashOptions crash_options = shape.medium();
  crash_options.data_bytes = image.size() - crash_options.log_bytes;
  auto crash = medium::CrashMedium::make(crash_options).value();
  auto* const medium = crash.get();
  for (std::uint64_t at = 0; at < image.size(); at += 4096) {
    static constexpr std::byte zeros[4096] = {};
    if (std::memcmp(image.data() + at, zeros, 4096) == 0) continue;
    ASSERT_TRUE(medium->allocate(at, 4096).ok());
    medium->store(at, image.data() + at, 4096);
    medium->flush(at, 4096);
  }
  ASSERT_TRUE(medium->fence().ok());
  crash::Image before(medium->begin_trace(), shape.max_data_bytes);
  std::vector<std::uint64_t> ids;  // what the copy has after each step
  std::uint64_t checkpoints = 0;
  medium::Trace trace;
  {
    medium->begin(0);
    auto replica = Replica::open_on(std::move(crash), {}).value();
    ids.push_back(replica->last());
    Stream stream(log, uuid, place_of(replica->file().header().replication));
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
  crash::RecoveredPool<BackedUp, decltype(look)> subject(shadow.recover, look);
  auto arena = crash::Arena::make({crash_options.log_bytes, shape.max_data_bytes, base,
                                   crash_options.append_unit, crash_options.fence_is_sync})
                   .value();
  crash::ExploreOptions how;
  how.max_recoveries = pool::testing::rounds_in(6000);
  crash::Seen seen;
  crash::Explorer explorer(*arena, before, subject, how, seen);
  explorer.run(trace);
  EXPECT_EQ(explorer.failure(), "");
  EXPECT_GT(explorer.counts().distinct, 100U);
  RecordProperty("recoveries", std::to_string(explorer.counts().recoveries));
}

}  // namespace
}  // namespace perdure::replication::test
