// SPDX-License-Identifier: BSD-3-Clause
//
// What the explorations of a primary and of a standby share: a medium that begins with a pool's
// file, and the recovery of all that power cuts can leave of it.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perdure/engine/engine_info.hpp"
#include "testing/crash_medium.hpp"
#include "testing/recording_medium.hpp"
#include "testing/recovered.hpp"
#include "tests/backup/history.hpp"
#include "tests/engine/suite.hpp"
#include "tests/replication/shared_log.hpp"
#include "tests/replication/simulated_log.hpp"

namespace perdure::replication::test {

/// A pool over a log in memory.
struct LoggedShape {
  explicit LoggedShape(bool like_a_file) {
    shape.like_a_file = like_a_file;
    shape.threads = 2;
    shape.ring_bytes = like_a_file ? 128 << 10 : 48 << 10;
    shape.max_data_bytes = 256 * pool::chunk_bytes;
    options = shape.options(shadow);
    options.replicate.service = log;
  }
  const engine::EngineInfo& shadow = *engine::find_instance("shadow");
  perdure::test::Shape shape;
  Options options;
  const std::shared_ptr<SimulatedLog> simulated = std::make_shared<SimulatedLog>(1);
  const std::shared_ptr<SharedLog> log = std::make_shared<SharedLog>(simulated);
};

/// A pool's file after its first session, of ten transactions; what else is known of it.
struct FirstSession {
  std::vector<std::byte> image;
  std::uint64_t base = 0;
  std::uint8_t uuid[16] = {};
};
inline FirstSession first_session(const LoggedShape& of, perdure::test::Program& program) {
  using Pool = perdure::test::AnyPool<perdure::test::BackedUp>;
  FirstSession first;
  auto medium = medium::RecordingMedium::make(of.shape.medium()).value();
  auto* const recording = medium.get();
  auto pool = Pool::try_open_on("recording", of.options, std::move(medium), true).value();
  for (int i = 0; i < 10; ++i) program.step(pool);
  const pool::Header header = pool.header();
  first.base = header.base;
  std::memcpy(first.uuid, header.uuid, sizeof first.uuid);
  pool.close();
  first.image = recording->current_image();
  return first;
}

/// A medium with the file's contents, all durable.
inline std::unique_ptr<medium::CrashMedium> crash_medium(const LoggedShape& of,
                                                         const std::vector<std::byte>& image) {
  medium::CrashOptions options = of.shape.medium();
  options.data_bytes = image.size() - options.log_bytes;
  auto made = medium::CrashMedium::make(options).value();
  for (std::uint64_t at = 0; at < image.size(); at += 4096) {
    static constexpr std::byte zeros[4096] = {};
    if (std::memcmp(image.data() + at, zeros, 4096) == 0) continue;
    EXPECT_TRUE(made->allocate(at, 4096).ok());
    made->store(at, image.data() + at, 4096);
    made->flush(at, 4096);
  }
  EXPECT_TRUE(made->fence().ok());
  return made;
}

/// Recovers what power cuts leave of the trace; `look` judges it, as in RecoveredPool. `base`: the
/// pool's address.
template <class Look>
void recover_all(const LoggedShape& of, std::uint64_t base, crash::Image& before,
                 const medium::Trace& trace, Look look) {
  const medium::CrashOptions options = of.shape.medium();
  crash::RecoveredPool<perdure::test::BackedUp, Look> subject(of.shadow.recover, std::move(look));
  auto arena = crash::Arena::make({options.log_bytes, of.shape.max_data_bytes, base,
                                   options.append_unit, options.fence_is_sync})
                   .value();
  crash::ExploreOptions how;
  how.max_recoveries = pool::testing::rounds_in(6000);
  crash::Seen seen;
  crash::Explorer explorer(*arena, before, subject, how, seen);
  explorer.run(trace);
  EXPECT_EQ(explorer.failure(), "");
  EXPECT_GT(explorer.counts().distinct, 100U);
  ::testing::Test::RecordProperty("recoveries", std::to_string(explorer.counts().recoveries));
}

}  // namespace perdure::replication::test
