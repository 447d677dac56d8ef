// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that run transactions, and one that makes checkpoints, on a medium whose fences fail from
// some instant on: each of them sees the failure, with its first message, and no engine reads
// unsynchronised data meanwhile (ThreadSanitizer).
#include <atomic>
#include <set>

#include "testing/faulty_medium.hpp"
#include "tests/engine/threads.hpp"

namespace perdure::test {
namespace {

class Failure : public EngineTest {};
ENGINE_SUITE(Failure, durable_ones);

TEST_P(Failure, EachThreadSeesIt) {
  for (std::uint64_t nth = 1; nth < 200; nth = nth * 2 + 1) {
    Shape shape;
    shape.threads = 1;  // one log for all threads
    auto recording = medium::RecordingMedium::make(shape.medium()).value();
    medium::RecordingMedium* const raw = recording.get();
    auto faulty = std::make_unique<medium::FaultyMedium>(std::move(recording));
    medium::FaultyMedium* const faults = faulty.get();
    auto pool =
        AnyPool<Root>::try_open_on("recording", shape.options(GetParam()), std::move(faulty), true)
            .value();
    faults->fail(medium::FaultyMedium::Call::fence, nth, EIO, true);
    constexpr int threads = 3;
    std::array<std::atomic<std::uint64_t>, threads> acknowledged{};
    std::atomic<bool> stop{false};
    std::thread checkpointer([&] {
      while (!stop) {
        try {
          pool.checkpoint();
        } catch (const error&) {}  // the threads see it, too
        std::this_thread::yield();
      }
    });
    in_threads(threads, [&](int t) {
      const auto mine = static_cast<std::size_t>(t);
      Code code = Code::ok;
      for (std::uint64_t n = 1; code == Code::ok; ++n) {
        code = pool.try_update([&](auto& tx, Root& r) {
                     for (std::size_t w = mine; w < 32; w += 4) tx(r.word[w]) = n;
                   })
                   .code();
        if (code == Code::ok) acknowledged[mine] = n;
      }
      EXPECT_EQ(Code::poisoned, code) << nth;
    });
    stop = true;
    checkpointer.join();
    const Recovered r = recover(GetParam(), raw->durable_image(), shape);
    ASSERT_TRUE(r.status.ok()) << nth << ": " << r.status.message();
    std::uint64_t words[32];
    std::memcpy(words, r.state.root.data(), sizeof words);
    for (std::size_t w = 0; w < 32; ++w)
      if (w % 4 < threads) {
        EXPECT_GE(words[w], acknowledged[w % 4]) << nth << ", word " << w;
      }
  }
}

}  // namespace
}  // namespace perdure::test
