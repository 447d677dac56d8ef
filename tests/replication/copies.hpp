// SPDX-License-Identifier: BSD-3-Clause
//
// Copies: a replicated pool over a simulated log, with a backup, of which tests make further
// copies; and one copy of which there are only frames.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "perdure/api/standby.hpp"
#include "perdure/log/record.hpp"
#include "tests/backup/history.hpp"
#include "tests/replication/shared_log.hpp"
#include "tests/replication/simulated_log.hpp"

namespace perdure::replication::test {

using ReplicatedPool = perdure::test::AnyPool<perdure::test::BackedUp>;

struct Copies {
  Copies() {
    std::filesystem::create_directory(scratch.path("backups"));
    auto pool = ReplicatedPool::open(scratch.path(), options());
    std::memcpy(uuid, pool.header().uuid, sizeof uuid);
    program.step(pool);
    (void)pool.backup(scratch.path("backups"));
  }
  [[nodiscard]] Options options() const {
    Options o;
    o.medium = "emulated";
    o.creation.log_size = 1 << 20;
    o.creation.max_size = 256 << 20;
    o.replicate = standby().replicate;
    return o;
  }
  [[nodiscard]] StandbyOptions standby() const {
    StandbyOptions o;
    o.medium = "emulated";
    o.replicate.service = shared;
    o.replicate.name = "a test";
    o.replicate.patience = std::chrono::seconds(20);
    o.replicate.close_patience = std::chrono::seconds(20);
    o.backups = scratch.path("backups");
    return o;
  }
  [[nodiscard]] std::unique_ptr<replication::StandbyCopy> follow() const {
    return follow(standby());
  }
  [[nodiscard]] std::unique_ptr<replication::StandbyCopy> follow(const StandbyOptions& o) const {
    return replication::StandbyCopy::open(scratch.path("copy"), o).value();
  }
  // Another copy, of which only the frames are seen. It says that it gives a sign so often.
  [[nodiscard]] Stream other(std::chrono::milliseconds beat = {}) const {
    Stream stream(std::make_shared<SharedLog>(shared.get()), uuid, {});
    stream.say_beat(beat);
    const auto ignore = [](const backup::Frame&, const StreamPlace&) { return Status(); };
    EXPECT_EQ(stream.claim("0123456789abcdef the other one", ignore).value(),
              Stream::Claim::primary);
    return stream;
  }
  // Appends a transaction of it.
  static void append(Stream& stream, std::vector<std::uint64_t> entries) {
    backup::FrameHeader h{};
    h.kind = backup::FrameKind::group;
    h.last = stream.place().end.last + 1;
    h.transactions = 1;
    entries.push_back(log::entry_key(log::EntryKind::end, 0, 0));
    entries.push_back(h.last);
    EXPECT_EQ(stream.append(h, entries.data(), entries.size() * 8).value(), Stream::State::in_log);
  }
  const pool::testing::Scratch scratch;
  const std::shared_ptr<SimulatedLog> log = std::make_shared<SimulatedLog>(1);
  const std::shared_ptr<SharedLog> shared = std::make_shared<SharedLog>(log);
  std::uint8_t uuid[16];
  perdure::test::Program program{5};
};

}  // namespace perdure::replication::test
