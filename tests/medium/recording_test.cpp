// SPDX-License-Identifier: BSD-3-Clause
//
// The recording medium's model of what survives a power cut, rule by rule (persistency.hpp), its
// events, marks and hooks.
#include "testing/recording_medium.hpp"

#include <atomic>
#include <cstring>
#include <thread>

#include "scratch.hpp"

namespace perdure::medium {
namespace {

using testing::pattern;

class Recording : public ::testing::Test {
 protected:
  std::uint64_t durable_word(std::uint64_t offset) const {
    std::uint64_t v = 0;
    std::memcpy(&v, m->durable_image().data() + offset, 8);
    return v;
  }
  void put(std::uint64_t offset, std::uint64_t value) const { m->store(offset, &value, 8); }
  static void elsewhere(const std::function<void()>& f) { std::thread(f).join(); }

  std::unique_ptr<RecordingMedium> m =
      RecordingMedium::make(
          {.log_bytes = 64 << 10, .data_bytes = 64 << 10, .max_data_bytes = 128 << 10})
          .value();
};

TEST_F(Recording, a_store_alone_is_not_durable) {
  put(0, 1);
  ASSERT_TRUE(m->fence().ok());
  EXPECT_FALSE(m->is_durable(0, 8));
  EXPECT_EQ(durable_word(0), 0U);
  EXPECT_TRUE(m->is_durable(8, 8)) << "its neighbour was never stored to";
}

TEST_F(Recording, flush_without_fence_is_not_durable_with_it_is) {
  put(0, 1);
  m->flush(0, 8);
  EXPECT_FALSE(m->is_durable(0, 8));
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(0, 8));
  EXPECT_EQ(durable_word(0), 1U);
}

TEST_F(Recording, a_flush_takes_the_whole_line_and_no_other) {
  put(0, 1);
  put(56, 2);
  put(64, 3);
  m->flush(8, 1);
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(0, 64));
  EXPECT_FALSE(m->is_durable(0, 65));
  EXPECT_EQ(durable_word(64), 0U);
}

TEST_F(Recording, what_is_stored_after_the_flush_is_not_covered_by_it) {
  put(0, 1);
  m->flush(0, 8);
  put(0, 2);
  ASSERT_TRUE(m->fence().ok());
  EXPECT_FALSE(m->is_durable(0, 8));
  EXPECT_EQ(durable_word(0), 1U) << "the value the flush captured";
}

TEST_F(Recording, a_fence_of_another_thread_does_not_help) {
  put(0, 1);
  m->flush(0, 8);
  elsewhere([&] { ASSERT_TRUE(m->fence().ok()); });
  EXPECT_FALSE(m->is_durable(0, 8));
  elsewhere([&] {
    m->flush(0, 8);
    ASSERT_TRUE(m->fence().ok());
  });
  EXPECT_TRUE(m->is_durable(0, 8)) << "another thread may flush and fence our store";
}

TEST_F(Recording, an_older_capture_fenced_later_takes_nothing_back) {
  put(0, 1);
  m->flush(0, 8);
  elsewhere([&] {
    put(0, 2);
    m->flush(0, 8);
    ASSERT_TRUE(m->fence().ok());
  });
  ASSERT_TRUE(m->fence().ok());
  EXPECT_EQ(durable_word(0), 2U);
  EXPECT_TRUE(m->is_durable(0, 8));
}

TEST_F(Recording, a_streamed_line_waits_for_the_fence_of_its_own_thread) {
  const auto line = pattern(64, 1);
  m->stream(128, line.data(), 64);
  elsewhere([&] {
    m->flush(128, 64);
    ASSERT_TRUE(m->fence().ok());
  });
  EXPECT_FALSE(m->is_durable(128, 64)) << "it waits in that thread's write-combining buffer";
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(128, 64));
}

TEST_F(Recording, both_addresses_of_a_ring_are_one_line) {
  const RingMap ring = m->map_ring(4096, 4096).value();
  const auto two = pattern(128, 2);
  ASSERT_TRUE(m->append_fence(ring, 4096 - 64, two.data(), 128).ok());
  EXPECT_TRUE(m->is_durable(4096, 4096));
  const auto image = m->durable_image();
  EXPECT_EQ(std::memcmp(image.data() + 8192 - 64, two.data(), 64), 0);
  EXPECT_EQ(std::memcmp(image.data() + 4096, two.data() + 64, 64), 0);
}

TEST_F(Recording, flush_all_makes_the_stores_of_all_threads_durable_and_its_own_streams) {
  put(0, 1);
  elsewhere([&] { put(64 << 10, 2); });
  const auto line = pattern(64, 3);
  m->stream(4096, line.data(), 64);
  ASSERT_TRUE(m->flush_all().ok());
  EXPECT_EQ(m->durable_image(), m->current_image());
}

TEST_F(Recording, an_image_can_be_opened_again) {
  put(64 << 10, 42);
  m->flush(64 << 10, 8);
  ASSERT_TRUE(m->fence().ok());
  put(72 << 10, 43);  // lost
  ASSERT_TRUE(m->grow(128 << 10).ok());
  const auto image = m->durable_image();
  EXPECT_EQ(image.size(), 192U << 10);
  auto again =
      RecordingMedium::make({.log_bytes = 64 << 10, .data_bytes = 128 << 10}, image).value();
  EXPECT_EQ(again->current_image(), image);
  EXPECT_TRUE(again->is_durable(0, image.size()));
  std::uint64_t v = 0;
  std::memcpy(&v, again->at(72 << 10), 8);
  EXPECT_EQ(v, 0U);
}

TEST_F(Recording, events_and_marks_come_in_order) {
  put(8, 7);
  m->flush(8, 8);
  ASSERT_TRUE(m->fence().ok());
  m->mark("acknowledge", 5);
  const auto line = pattern(128, 4);
  const RingMap ring = m->map_ring(4096, 4096).value();
  m->append(ring, 4096 - 64, line.data(), 128);
  ASSERT_TRUE(m->flush_all().ok());
  ASSERT_TRUE(m->grow(68 << 10).ok());
  std::string text;
  for (const Event& e : m->events()) {
    text += std::string(name(e.kind)) + " " + std::to_string(e.offset) + " " +
            std::to_string(e.bytes) + " " + e.label + "\n";
    EXPECT_EQ(e.thread, base::thread_slot());
    EXPECT_TRUE(e.data.empty());
  }
  EXPECT_EQ(text,
            "store 8 8 \nflush 0 64 \nfence 0 0 \nmark 5 0 acknowledge\nstream 8128 64 \nstream "
            "4096 64 \nflush_all 0 0 \n"
            "grow 0 69632 \n");
  m->forget_events();
  EXPECT_TRUE(m->events().empty());
}

TEST_F(Recording, events_hold_the_bytes_when_asked) {
  auto k = RecordingMedium::make({.keep_bytes = true}).value();
  const auto line = pattern(64, 5);
  k->stream(64, line.data(), 64);
  ASSERT_EQ(k->events().size(), 1U);
  EXPECT_EQ(k->events()[0].data, line);
}

TEST_F(Recording, a_hook_holds_a_fence_back) {
  std::atomic<bool> arrived{false}, release{false};
  std::atomic<int> after{0};
  m->set_fence_hooks(
      [&] {
        arrived = true;
        while (!release) std::this_thread::yield();
      },
      [&] { ++after; });
  std::thread t([&] {
    put(0, 1);
    m->flush(0, 8);
    ASSERT_TRUE(m->fence().ok());
  });
  while (!arrived) std::this_thread::yield();
  EXPECT_FALSE(m->is_durable(0, 8));
  EXPECT_EQ(after, 0);
  release = true;
  t.join();
  EXPECT_TRUE(m->is_durable(0, 8));
  EXPECT_EQ(after, 1);
}

TEST(RecordingMake, refuses_what_cannot_be) {
  EXPECT_EQ(RecordingMedium::make({.log_bytes = 100}).code(), Code::invalid);
  EXPECT_EQ(
      RecordingMedium::make({.log_bytes = 4096, .data_bytes = 0}, std::vector<std::byte>(8192))
          .code(),
      Code::invalid);
}

}  // namespace
}  // namespace perdure::medium
