// SPDX-License-Identifier: BSD-3-Clause
//
// The fault injector: the n-th call fails as planned, nothing that it should have covered becomes
// durable, and a failed medium stays failed.
#include "testing/faulty_medium.hpp"

#include <cerrno>

#include "scratch.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::medium {
namespace {

using Call = FaultyMedium::Call;
using testing::pattern;

class Faulty : public ::testing::Test {
 protected:
  Faulty() {
    auto r = RecordingMedium::make({.log_bytes = 64 << 10,
                                    .data_bytes = 64 << 10,
                                    .max_data_bytes = 256 << 10,
                                    .path = "some.pool"})
                 .value();
    recording = r.get();
    m = std::make_unique<FaultyMedium>(std::move(r));
    ring = m->map_ring(4096, 8192).value();
  }
  Status commit() { return m->append_fence(ring, 0, line.data(), 64); }

  std::vector<std::byte> line = pattern(64, 1);
  RecordingMedium* recording = nullptr;
  std::unique_ptr<FaultyMedium> m;
  RingMap ring;
};

TEST_F(Faulty, passes_everything_on_when_nothing_is_planned) {
  ASSERT_TRUE(commit().ok());
  EXPECT_EQ(m->at(4096), recording->at(4096));
  EXPECT_EQ(m->data(), recording->data());
  EXPECT_EQ(m->counters().fences, 1U);
  ASSERT_TRUE(m->grow(128 << 10).ok());
  EXPECT_EQ(m->data_bytes(), 128U << 10);
  EXPECT_EQ(m->calls(Call::fence), 1U);
  EXPECT_EQ(m->kind(), "recording");
}

TEST_F(Faulty, the_nth_fence_fails_and_then_the_medium_is_poisoned) {
  m->fail(Call::fence, 3, EIO);
  ASSERT_TRUE(commit().ok());
  ASSERT_TRUE(commit().ok());
  const Status s = commit();
  EXPECT_EQ(s.code(), Code::io);
  EXPECT_NE(s.message().find("some.pool"), std::string::npos) << s.message();
  EXPECT_FALSE(recording->is_durable(4096, 64));
  const Status later = commit();
  EXPECT_EQ(later.code(), Code::poisoned);
  EXPECT_NE(later.message().find("Input/output error"), std::string::npos)
      << "the first cause is kept: " << later.message();
  EXPECT_EQ(m->flush_all().code(), Code::poisoned);
  EXPECT_EQ(m->grow(128 << 10).code(), Code::poisoned);
}

TEST_F(Faulty, a_full_disk_has_its_own_code) {
  m->fail(Call::fence, 1, ENOSPC);
  EXPECT_EQ(commit().code(), Code::full);
}

TEST_F(Faulty, a_lost_append_is_told_by_the_next_fence) {
  m->fail(Call::append, 2, EIO);
  ASSERT_TRUE(commit().ok());
  const auto other = pattern(64, 2);
  m->append(ring, 64, other.data(), 64);
  EXPECT_TRUE(testing::zero_at(*m, 4096 + 64, 64));
  EXPECT_EQ(m->fence().code(), Code::io);
  EXPECT_EQ(m->fence().code(), Code::poisoned);
}

TEST_F(Faulty, growth_that_fails_poisons_nothing) {
  m->fail(Call::grow, 1, ENOSPC);
  EXPECT_EQ(m->grow(128 << 10).code(), Code::full);
  EXPECT_EQ(m->data_bytes(), 64U << 10);
  ASSERT_TRUE(commit().ok());
  ASSERT_TRUE(m->grow(128 << 10).ok());
  m->fail(Call::grow, 1, ENOSPC, true);
  EXPECT_EQ(m->grow(256 << 10).code(), Code::full);
  EXPECT_EQ(m->grow(256 << 10).code(), Code::full) << "and all later";
}

TEST_F(Faulty, maps_can_fail_too) {
  m->fail(Call::map_ring, 1, ENOMEM);
  EXPECT_EQ(m->map_ring(4096, 4096).code(), Code::out_of_memory);
  EXPECT_TRUE(m->map_ring(4096, 4096).ok());
  m->fail(Call::map_view, 1, ENOMEM);
  EXPECT_EQ(m->map_view(nullptr, 0, 4096, ViewKind::fresh).code(), Code::out_of_memory);
}

}  // namespace
}  // namespace perdure::medium
