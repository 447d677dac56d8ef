// SPDX-License-Identifier: BSD-3-Clause
//
// If the process can have no more threads, every engine works without its own: the threads that
// commit and wait then do what was promised.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "perdure/engine/background.hpp"
#include "tests/engine/suite.hpp"

namespace {
std::atomic<bool> no_threads{false};
std::atomic<int> refused{0};
}  // namespace

// A sanitizer's own, which it needs to be called where it is part of the program (Clang).
extern "C" [[gnu::weak]] int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*,
                                                          void* (*)(void*), void*);

// The C++ library calls this function instead of the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*f)(void*), void* argument) {
  if (no_threads) return ++refused, EAGAIN;
  static const auto real =
      __interceptor_pthread_create != nullptr
          ? &__interceptor_pthread_create
          : reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, f, argument);
}

namespace perdure::test {
namespace {

using engine::Background;

struct NoThreads {
  NoThreads() {
    refused = 0;
    no_threads = true;
  }
  ~NoThreads() { no_threads = false; }
};

TEST(Background, SaysThatItCantBeStartedAndIsStartedLater) {
  std::atomic<int> runs{0};
  Background* self = nullptr;
  Background background([&] {
    ++runs;
    EXPECT_EQ(base::background_slot, base::thread_slot());
    while (self->sleep([] { return true; })) {}
  });
  self = &background;
  {
    const NoThreads none;
    EXPECT_FALSE(background.notify());
    EXPECT_FALSE(background.notify());
    EXPECT_EQ(2, refused);
  }
  EXPECT_TRUE(background.notify());
  background.stop();
  EXPECT_EQ(1, runs);
}

struct Root {
  std::array<p<std::uint64_t>, 256> word;
};

// Each durable engine, in a process that can have no more threads from before the pool is opened
// until after it is closed.
class WithoutThreads : public EngineTest {};
ENGINE_SUITE(WithoutThreads, durable_ones);

TEST_P(WithoutThreads, AllThatIsPromisedIsDone) {
  for (const Durability durability : {durable, async})
    for (const bool like_a_file : {false, true}) {
      Shape shape;
      shape.durability = durability;
      shape.like_a_file = like_a_file;
      shape.threads = 1;
      shape.ring_bytes = ring_of_at_least(GetParam(), 65536);
      shape.softwrap.alias_entries = 64;
      const NoThreads none;
      auto rig = open_rig<Root>(GetParam(), shape);
      std::uint64_t last = 0;
      const std::uint64_t times = 1000 / scale / heavy(GetParam());
      for (std::uint64_t i = 0; i < times; ++i) {  // the log wraps
        const auto receipt = rig.pool.update([&](auto& tx, Root& r) {
          for (std::size_t w = 0; w < 4; ++w) tx(r.word[(i * 5 + w) % 256]) = i + 1;
          return ++tx(r.word[7]);
        });
        last = receipt.id();
        ASSERT_TRUE(receipt.durable()) << i;
      }
      EXPECT_GE(rig.pool.durable_id(), last);
      const std::uint64_t value =
          rig.pool.view([](auto& tx, const Root& r) { return tx(r.word[7]); });
      const Recovered killed = recover(GetParam(), rig.medium->durable_image(), shape);
      ASSERT_TRUE(killed.status.ok()) << killed.status.message();
      std::uint64_t found = 0;
      std::memcpy(&found, killed.state.root.data() + 7 * 8, 8);
      EXPECT_EQ(value, found) << "an acknowledged update is lost";
      EXPECT_TRUE(rig.pool.close().clean);
      if (is_dudetm(GetParam()) || (is_shadow(GetParam()) && durability == async &&
                                    !is_seen_before_its_own_fence(GetParam()))) {
        EXPECT_GT(refused, 0) << "it has not asked for a thread";
      }
    }
}

}  // namespace
}  // namespace perdure::test
