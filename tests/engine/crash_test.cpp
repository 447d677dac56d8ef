// SPDX-License-Identifier: BSD-3-Clause
//
// Power cuts with threads that run freely: images of what is surely durable are taken at fences and
// after acknowledgements, and recovered (LAW-1, LAW-2). tests/conformance tests the other images
// that a power cut may leave, tests/crash tests threads that a seed schedules.
#include <atomic>
#include <mutex>

#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

constexpr std::size_t max_threads = 4, accounts = 32;
struct Shared {
  std::array<p<std::uint64_t>, accounts> account;
  std::array<p<std::uint64_t>, max_threads * 8> counter;  // a line each
  // [t][u]: the value of u's counter that t's latest transaction had read.
  std::array<p<std::uint64_t>, max_threads * max_threads> seen;
};
struct Plain {
  std::uint64_t account[accounts], counter[max_threads * 8], seen[max_threads * max_threads];
};
static_assert(sizeof(Plain) == sizeof(Shared));

class CrashThreads : public EngineTest {
 public:
  /// Threads transfer money, count, and record what they have read of each other, while images are
  /// taken at their fences.
  void run(const Shape& setup, std::size_t threads, unsigned each, bool async_mode) {
    each /= heavy(GetParam());
    auto rig = open_rig<Shared>(GetParam(), setup);
    rig.pool
        .update([](auto& tx, Shared& r) {
          for (auto& a : r.account) tx(a) = 1000;
        })
        .wait();
    struct Image {
      std::vector<std::byte> bytes;
      std::array<std::uint64_t, max_threads> least;
    };
    std::array<std::atomic<std::uint64_t>, max_threads> acknowledged{};
    std::vector<Image> images;
    std::mutex mutex;
    std::atomic<unsigned> fences{0};
    const auto take = [&] {
      Image image;
      // Read before the image is taken: they stay true.
      for (std::size_t t = 0; t < max_threads; ++t) image.least[t] = acknowledged[t];
      image.bytes = rig.medium->durable_image();
      const std::lock_guard lock(mutex);
      images.push_back(std::move(image));
    };
    const unsigned every =
        std::max(1U, each * static_cast<unsigned>(threads) / (scale > 1 ? 10 : 60));
    // About the number of fences per transaction.
    const unsigned many = heavy(GetParam()) > 1 ? heavy(GetParam()) * 10 : 1;
    rig.medium->set_fence_hooks(
        [&] {
          if (++fences % (every * many) == 0) take();
        },
        {});
    in_threads(static_cast<int>(threads), [&](int t) {
      const auto me = static_cast<std::size_t>(t);
      std::mt19937_64 random(me);
      for (unsigned i = 0; i < each; ++i) {
        const std::uint64_t choice = random();
        const auto receipt =
            rig.pool.update(async_mode ? async : setup.durability, [&](auto& tx, Shared& r) {
              std::mt19937_64 inner(choice);
              const std::size_t from = inner() % accounts, to = inner() % accounts;
              if (tx(r.account[from]) > 0) {
                --tx(r.account[from]);
                ++tx(r.account[to]);
              }
              for (std::size_t u = 0; u < threads; ++u)
                if (u != me)
                  tx(r.seen[me * max_threads + u]) =
                      static_cast<std::uint64_t>(tx(r.counter[u * 8]));
              return ++tx(r.counter[me * 8]);
            });
        if (async_mode && i % 16 == 0) receipt.wait();
        if (!async_mode || i % 16 == 0) {
          acknowledged[me] = receipt.value();
          // The log is durable before the acknowledgement: at the return of the update, with no
          // later fence.
          if (i % every == 0) take();
        }
      }
    });
    rig.medium->set_fence_hooks({}, {});
    const auto judge = [&](const Image& image) {
      const Recovered r = recover(GetParam(), image.bytes, setup);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      Plain plain;
      std::memcpy(&plain, r.state.root.data(), sizeof plain);
      std::uint64_t sum = 0;
      for (const std::uint64_t a : plain.account) sum += a;
      ASSERT_EQ(accounts * 1000, sum) << "half a transaction";
      for (std::size_t t = 0; t < threads; ++t) {
        ASSERT_GE(plain.counter[t * 8], image.least[t])
            << "an acknowledged transaction of thread " << t << " is lost";
        for (std::size_t u = 0; u < threads; ++u)
          if (u != t) {
            ASSERT_LE(plain.seen[t * max_threads + u], plain.counter[u * 8])
                << "thread " << t << " had read of " << u << " what is lost";
          }
      }
    };
    for (const Image& image : images) {
      judge(image);
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(images.size(), async_mode ? 1U : 5U);  // no thread waits: there are few fences
    rig.pool.close();
    Image last{rig.medium->durable_image(), {}};
    for (std::size_t t = 0; t < threads; ++t) last.least[t] = each;
    judge(last);
  }
};
ENGINE_SUITE(CrashThreads, durable_isolating_ones);

TEST_P(CrashThreads, DurableUpdates) { this->run(Shape(), 2, 1500 / scale, false); }
TEST_P(CrashThreads, MoreThreadsThanRings) { this->run(Shape(), 4, 500 / scale, false); }
TEST_P(CrashThreads, AFile) {
  Shape setup;
  setup.like_a_file = true;
  setup.ring_bytes = 256 << 10;
  this->run(setup, 3, 600 / scale, false);
}
TEST_P(CrashThreads, NobodyWaits) {
  Shape setup;
  setup.durability = async;
  this->run(setup, 2, 1500 / scale, true);
}

}  // namespace
}  // namespace perdure::test
