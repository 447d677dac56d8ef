// SPDX-License-Identifier: BSD-3-Clause
//
// A REWIND log after a kill: its last store may be visible and not durable. What recovery then sees
// must still be present when the power fails during recovery (REDO-4).
#include "papers/rewind/rewind_log.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "testing/recording_medium.hpp"

namespace perdure::test {
namespace {

using papers::rewind::AriesRecord;
using papers::rewind::AriesType;
using papers::rewind::LogVersion;
using papers::rewind::RewindLog;
using papers::rewind::RewindShape;

constexpr papers::rewind::RewindPlace place{
    .offset = 4096, .bytes = 48 << 10, .seed = 77, .identity = 78, .epoch = 3};

medium::RecordingOptions options() {
  medium::RecordingOptions o;
  o.log_bytes = o.data_bytes = 64 << 10;
  return o;
}

void append(RewindLog& log, std::uint64_t lsn) {
  AriesRecord r = AriesRecord::make(AriesType::update, lsn, 1);
  r.words[3] = lsn * 8;
  log.append(r);
}

std::vector<std::uint64_t> lsns(RewindLog& log) {
  std::vector<std::uint64_t> all;
  for (auto c = log.first(); c; c = log.next(c)) all.push_back(c.record->lsn());
  return all;
}

class RewindLogs : public ::testing::TestWithParam<std::tuple<unsigned, LogVersion>> {};
INSTANTIATE_TEST_SUITE_P(All, RewindLogs,
                         ::testing::Combine(::testing::Values(1U, 2U),
                                            ::testing::Values(LogVersion::simple,
                                                              LogVersion::optimized,
                                                              LogVersion::batch)));

TEST_P(RewindLogs, KeepWhatTheFirstRecoveryAfterAKillHasSeen) {
  RewindShape shape;
  std::tie(shape.layers, shape.version) = GetParam();
  shape.group = 4;
  shape.bucket_cells = 16;
  struct Kill {
    std::vector<std::byte> durable, visible;
  };
  std::vector<Kill> kills;  // before each fence
  {
    auto medium = medium::RecordingMedium::make(options()).value();
    RewindLog log(*medium, place, shape);
    log.format().or_throw();
    medium->set_fence_hooks(
        [&] { kills.push_back({medium->durable_image(), medium->current_image()}); }, {});
    for (std::uint64_t lsn = 1; lsn <= 40; ++lsn) {
      append(log, lsn);
      if (lsn % 7 == 0) log.persist();
    }
    medium->set_fence_hooks({}, {});
  }
  std::set<std::size_t> seen;
  for (const Kill& kill : kills) {
    auto medium = medium::RecordingMedium::make(options(), kill.durable).value();
    for (std::size_t at = 0; at < kill.visible.size(); at += 8)  // the contents of the caches
      if (std::memcmp(&kill.visible[at], &kill.durable[at], 8) != 0)
        medium->store(at, &kill.visible[at], 8);
    std::vector<std::uint64_t> first;
    std::vector<std::vector<std::byte>> within;  // power cuts in the first recovery
    {
      RewindLog log(*medium, place, shape);
      medium->set_fence_hooks({}, [&] { within.push_back(medium->durable_image()); });
      ASSERT_TRUE(log.recover().value());
      medium->set_fence_hooks({}, {});
      first = lsns(log);
      for (std::size_t i = 0; i < first.size(); ++i) ASSERT_EQ(i + 1, first[i]);
      append(log, 1000);  // recovery's own record
      log.persist();
    }
    // Before anything was made durable, the last record may be missing.
    for (const auto& image : within) {
      auto cut = medium::RecordingMedium::make(options(), image).value();
      RewindLog log(*cut, place, shape);
      const auto found = log.recover();
      ASSERT_TRUE(found.ok()) << found.status().message();
      const auto left = lsns(log);
      ASSERT_TRUE(left == first ||
                  left.size() + (shape.version == LogVersion::batch ? shape.group : 1) >=
                      first.size());
    }
    seen.insert(first.size());
    auto again = medium::RecordingMedium::make(options(), medium->durable_image()).value();
    RewindLog log(*again, place, shape);
    const auto found = log.recover();
    ASSERT_TRUE(found.ok()) << found.status().message();
    first.push_back(1000);
    ASSERT_EQ(first, lsns(log));
  }
  EXPECT_GT(seen.size(), 10U);
}

}  // namespace
}  // namespace perdure::test
