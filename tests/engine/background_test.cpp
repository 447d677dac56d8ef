// SPDX-License-Identifier: BSD-3-Clause
//
// A pool's own thread (engine/background.hpp): no wake-up is lost (BG-1), the thread is started
// when it is first needed, and not again after its end.
#include "perdure/engine/background.hpp"

#include <atomic>

#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using engine::Background;

// A thread that counts its notifications: their number is what was stored, whatever the moment at
// which it went to sleep.
TEST(Background, NoWakeUpIsLost) {
  std::atomic<std::uint64_t> made{0}, seen{0};
  Background* self = nullptr;
  Background background([&] {
    for (;;) {
      seen = made.load();
      if (!self->sleep([&] { return seen == made.load(); })) return;
    }
  });
  self = &background;
  for (std::uint64_t i = 1; i <= 20000 / scale; ++i) {
    made.store(i, std::memory_order_release);
    ASSERT_TRUE(background.notify());
    if (i % 7 == 0)
      while (seen != i) std::this_thread::yield();  // never ends if a wake-up is lost
  }
  background.stop();
  EXPECT_TRUE(background.notify());
}

TEST(Background, IsStartedWhenFirstNeededAndNotAfterItsEnd) {
  std::atomic<int> runs{0};
  Background* self = nullptr;
  Background background([&] {
    ++runs;
    EXPECT_EQ(base::background_slot, base::thread_slot());
    while (self->sleep([] { return true; })) {}
  });
  self = &background;
  EXPECT_EQ(0, runs);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(background.notify());
  background.stop();
  EXPECT_TRUE(background.notify());
  background.stop();
  EXPECT_EQ(1, runs);
}

}  // namespace
}  // namespace perdure::test
