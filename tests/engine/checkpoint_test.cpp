// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint alone: the DRAM that it uses while commits are not durable yet is bounded, however
// large the data region is and however many pages a slice may copy; nothing is lost because of the
// bound.
#include "perdure/engine/shadow/checkpoint.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "testing/recording_medium.hpp"

namespace perdure::engine::shadow {
namespace {

// The calls that a checkpoint makes to a TM, while nothing else runs.
struct Alone {
  void copy_begin() const noexcept {}
  void copy_end() const noexcept {}
  void copy_line(std::uint64_t* to, const std::byte* from) const noexcept {
    std::memcpy(to, from, 64);
  }
};

TEST(Checkpoint, WhatWaitsInDramIsBounded) {
  constexpr std::uint64_t data_bytes = std::uint64_t{96} << 20, log_bytes = 64 << 10;
  medium::RecordingOptions o;
  o.log_bytes = log_bytes;
  o.data_bytes = o.max_data_bytes = data_bytes;
  // Its events would take many times the memory that the test measures: they are dropped as they
  // come.
  auto medium = medium::RecordingMedium::make(o).value();
  std::vector<std::byte> view(data_bytes);
  for (std::uint64_t at = 0; at < data_bytes; at += 8) std::memcpy(&view[at], &at, 8);
  Marks marks(data_bytes);
  for (std::uint64_t at = 0; at < data_bytes; at += 64) marks.mark(at, true);

  pool::Header header{};
  header.max_data_bytes = data_bytes;
  Checkpoint checkpoint(*medium, marks, view.data(), header, nullptr, nullptr);
  Alone tm;
  std::uint64_t clock = 0, durable = 0, most = 0, waited = 0;
  checkpoint.start(7);
  for (;;) {
    const auto step =
        checkpoint.slice(tm, 4096, false, [&] { return ++clock; }, [&] { return durable; });
    most = std::max(most, checkpoint.waiting_bytes());
    medium->forget_events();
    ASSERT_TRUE(medium->fence().ok());
    if (step == Checkpoint::Step::copied) break;
    if (step != Checkpoint::Step::waiting) continue;
    ASSERT_GT(checkpoint.needs(), durable);
    durable = checkpoint.needs();
    ++waited;
  }
  EXPECT_LE(most, Checkpoint::max_waiting_bytes);
  // A bound with which nothing may wait would make each slice wait.
  EXPECT_GE(most, Checkpoint::max_waiting_bytes / 2);
  EXPECT_GE(waited, data_bytes / Checkpoint::max_waiting_bytes - 1);
  EXPECT_EQ(0, std::memcmp(view.data(), medium->data(), data_bytes));
  EXPECT_EQ(data_bytes / 64, checkpoint.lines());
}

}  // namespace
}  // namespace perdure::engine::shadow
