// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP's section IV-B with the crash explorer: a wrap that never ends is aborted, the alias
// tables are emptied, and what has closed is replayed from the logs to the data region, while the
// pool is open. The power is cut at every point of it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "papers/softwrap/options.hpp"
#include "papers/softwrap/wrap_calls.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

struct Numbers {
  static constexpr const char* layout_id = "perdure::test::Numbers/1";
  static constexpr std::size_t count = 10;
  std::uint64_t closed[count * 9];   ///< every ninth is one number
  std::uint64_t aborted[count * 9];  ///< those of the wrap that never ends
  std::uint64_t* block;
  template <class Tx, class F>
  void each_block(Tx&, F&& f) const {
    if (block != nullptr) f(block);
  }
};
using Wraps = papers::softwrap::SoftWrAP<Numbers>;
using papers::softwrap::Aliasing;

std::vector<EngineInfo> forms() {
  return engines_that(
      [](const EngineInfo& e) { return is_softwrap(e) && !isolates(e) && aliases_for_all(e); });
}

class SoftWrapEviction : public EngineTest {};
ENGINE_SUITE(SoftWrapEviction, forms);

TEST_P(SoftWrapEviction, EveryPowerCutLeavesWhatHasClosed) {
  constexpr std::uint64_t ring_bytes = 24576, steps = 14, evicted_at = 8;
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = Recorded::make_medium(2 * ring_bytes, 4 << 20);
    Recorded recorded(*made);
    Options o;
    o.engine = GetParam().name;
    o.engine_options = papers::SoftwrapOptions{.alias_entries = 1024, .long_wrap_ms = 20};
    o.creation.uuid_seed = 7;
    o.creation.threads = 2;
    o.creation.log_size = 2 * ring_bytes;
    std::atomic<bool> stored{false}, told{false};
    {
      Wraps sw("crash", o, std::move(made));
      recorded.made(sw.file().header());
      Numbers& r = sw.root();
      std::thread endless;
      for (std::uint64_t step = 0; step < steps; ++step) {
        if (step == evicted_at / 2) {
          endless = std::thread([&] {
            sw.wrapOpen();
            for (std::size_t i = 0; i < Numbers::count; ++i) sw.wrapStore(&r.aborted[i * 9], 9);
            stored = true;
            try {
              for (;;) {
                (void)sw.wrapLoad(&r.closed[0]);
                std::this_thread::yield();
              }
            } catch (const error& e) {
              told = e.code() == Code::busy;
            }
          });
          while (!stored) std::this_thread::yield();
        }
        recorded.begin(step);
        sw.wrapOpen({step % 3 == 0 ? Aliasing::local : Aliasing::global});
        if (auto* const old = sw.wrapLoad(&r.block); old != nullptr) sw.pfree(old);
        auto* const block = static_cast<std::uint64_t*>(sw.pmalloc(64));
        sw.wrapStore(block, step + 1);
        sw.wrapStore(&r.block, block);
        for (std::size_t i = 0; i < Numbers::count; ++i) sw.wrapStore(&r.closed[i * 9], step + 1);
        sw.wrapClose();
        recorded.done(step);
        if (step == evicted_at || step == steps - 2) sw.checkpoint();
      }
      endless.join();
      EXPECT_TRUE(told) << "the endless wrap was not evicted";
      recorded.end();
    }
    const auto look = [](auto&, const Numbers& r, const crash::Crash& crash) {
      if (!crash.created) return crash::Verdict{};
      const std::uint64_t value = r.closed[0];
      if (value < crash.least || value > crash.most + 1)
        return crash::Verdict{"the number is " + std::to_string(value), 0};
      for (std::size_t i = 0; i < Numbers::count; ++i) {
        if (r.closed[i * 9] != value) return crash::Verdict{"a part of a wrap", 0};
        if (r.aborted[i * 9] != 0) return crash::Verdict{"something of the aborted wrap", 0};
      }
      if (value != 0 && (r.block == nullptr || *r.block != value))
        return crash::Verdict{"another wrap's block", 0};
      return crash::Verdict{{}, value};
    };
    recorded.explore<Numbers>(GetParam().recover, model, 6000 / scale, 200 / scale, look);
  }
}

}  // namespace
}  // namespace perdure::test
