// SPDX-License-Identifier: BSD-3-Clause
//
// A program of a test on a crash medium, recorded, then every image that a power cut may leave of
// it: for tests that are not workloads of crashtest.hpp, such as the papers' calls and SQLite.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "testing/crash_medium.hpp"
#include "testing/crashtest.hpp"

namespace perdure::test {

class Recorded {
 public:
  static std::unique_ptr<medium::CrashMedium> make_medium(std::uint64_t ring_bytes,
                                                          std::uint64_t data_bytes) {
    medium::CrashOptions o;
    o.log_bytes = pool::first_ring + ring_bytes;
    o.data_bytes = o.max_data_bytes = data_bytes;
    o.sparse = true;
    return medium::CrashMedium::make(o).value();
  }

  /// Recording begins here; everything done before is durable. Make it before the pool is made, or
  /// later, while no thread works.
  explicit Recorded(medium::CrashMedium& medium)
      : medium_(&medium), image_(medium.begin_trace(), medium.data_bytes()) {}
  void made(const pool::Header& header) {
    geometry_ = {medium_->log_bytes(), medium_->max_data_bytes(), header.base,
                 medium_->append_unit(), medium_->fence_is_sync()};
    medium_->done(0);
  }
  void begin(std::uint64_t step) { medium_->begin(step); }
  void done(std::uint64_t step) { medium_->done(step + 1); }
  /// The medium of a process that is killed now, or was killed by kill_after; the recording
  /// continues on it.
  std::unique_ptr<medium::CrashMedium> heir() {
    auto heir = medium_->heir();
    medium_ = heir.get();
    return heir;
  }
  [[nodiscard]] medium::CrashMedium& medium() noexcept { return *medium_; }
  /// Call this while the medium exists.
  void end() { trace_ = medium_->end_trace(); }

  /// look(tx, root, crash): the verdict on a recovered pool. Fails if a verdict is bad, or if fewer
  /// than `least` distinct images were judged. `from`: only points at which this number of steps
  /// had begun.
  template <class Root, class Recover, class Look>
  void explore(Recover&& recover, crash::Model model, std::uint64_t most, std::uint64_t least,
               const Look& look, std::uint64_t from = 0) {
    crash::RecoveredPool<Root, Look> subject(recover, look);
    auto arena = crash::Arena::make(geometry_).value();
    crash::ExploreOptions how;
    how.model = model;
    how.max_recoveries = most;
    how.from = from;
    crash::Seen seen;
    crash::Explorer explorer(*arena, image_, subject, how, seen);
    explorer.run(trace_);
    EXPECT_EQ("", explorer.failure());
    EXPECT_GT(explorer.counts().distinct, least);
  }

 private:
  medium::CrashMedium* medium_;
  crash::Image image_;
  crash::Arena::Geometry geometry_;
  medium::Trace trace_;
};

}  // namespace perdure::test
