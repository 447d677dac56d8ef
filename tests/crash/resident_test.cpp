// SPDX-License-Identifier: BSD-3-Clause
//
// Options::max_resident under threads that a seed schedules: pages are given back beside stores,
// heap ops, rollbacks and checkpoints of other threads, with a switching point between the
// comparison of a page with the data region and the call that drops it (RESIDENT-1, RESIDENT-2).
// Nothing that a transaction stored may be lost.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "tests/conformance/configurations.hpp"
#include "tests/crash/scheduler.hpp"
#include "tests/engine/suite.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::test {
namespace {

using conformance::Configuration;
using conformance::configurations;

constexpr std::size_t threads = 3, slots = 8;
constexpr std::uint64_t page_words = 512, pages = 14;

struct Root {
  // A block of whole chunks, so that no page of it has words of a bitmap.
  ptr<p<std::uint64_t>> words;
  std::array<std::array<ptr<std::uint64_t>, slots>, threads> block;

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (auto* const all = tx.read(words)) f(all);
    for (const auto& own : block)
      for (const auto& b : own)
        if (auto* const one = tx.read(b)) f(one);
  }
};
using TestPool = AnyPool<Root>;

// A word of each page for each thread, all on lines of their own, and one that all of them share.
constexpr std::uint64_t word_of(std::uint64_t page, std::size_t t) {
  return page * page_words + t * 8;
}

struct Outcome {
  std::string wrong;
  std::uint64_t given_back = 0, switches = 0;
};

struct Oops {};

Outcome run(const EngineInfo& e, const Configuration& configuration, std::uint64_t seed,
            unsigned each) {
  watch_again();  // the limit is for one run
  Shape shape;
  shape.durability = configuration.durability;
  shape.like_a_file = configuration.like_a_file;
  shape.threads = threads + 1;
  shape.data_bytes = shape.max_data_bytes = 24 * pool::chunk_bytes;
  Options options = shape.options(e);
  options.max_resident = 16 << 10;
  medium::RecordingOptions recording = shape.medium();
  recording.step = [](medium::Step) { Scheduler::point(); };
  Outcome outcome;
  std::array<std::array<std::uint64_t, pages>, threads + 1> model{};
  Scheduler::start(seed);
  {
    auto pool = TestPool::try_open_on("recording", options,
                                      medium::RecordingMedium::make(recording).value(), true)
                    .value();
    pool.update([](auto& tx, Root& r) {
      tx(r.words) =
          static_cast<p<std::uint64_t>*>(static_cast<void*>(tx.alloc(pages * page_words * 8)));
    });
    const auto transact = [&](std::size_t t, std::mt19937_64& random) {
      const std::uint64_t page = random() % pages, other = random() % pages,
                          slot = random() % slots, bytes = 16 << random() % 8;
      const bool fails = random() % 8 == 0, allocates = random() % 2 == 0;
      try {
        pool.update([&](auto& tx, Root& r) {
          auto* const words = tx.read(r.words);
          auto& own = words[word_of(page, t)];
          tx(own) = tx.read(own) + 1;
          Scheduler::point();
          auto& shared = words[word_of(other, threads)];
          tx(shared) = tx.read(shared) + 1;
          if (allocates) {
            auto& block = r.block[t][slot];
            if (auto* const old = tx.read(block); old != nullptr) {
              tx.free(old);
              tx(block) = nullptr;
            } else {
              tx(block) = reinterpret_cast<std::uint64_t*>(tx.alloc(bytes));
            }
          }
          Scheduler::point();
          if (fails) throw Oops();
        });
        ++model[t][page];
        ++model[threads][other];
      } catch (const Oops&) {}
    };
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        std::mt19937_64 random(seed * 10 + t);
        for (unsigned i = 0; i < each; ++i) transact(t, random);
      });
    for (auto& w : workers) w.join();
    pool.view([&](auto& tx, const Root& r) {
      for (std::size_t t = 0; t <= threads; ++t)
        for (std::uint64_t page = 0; page < pages; ++page)
          if (const std::uint64_t found = tx.read(tx.read(r.words)[word_of(page, t)]);
              found != model[t][page])
            outcome.wrong = "word " + std::to_string(t) + " of page " + std::to_string(page) +
                            ": found " + std::to_string(found) + ", expected " +
                            std::to_string(model[t][page]);
    });
    for (const std::string& problem : pool.check().problems) outcome.wrong = problem;
    outcome.given_back = pool.stats().evictions;
    pool.close();
  }
  outcome.switches = Scheduler::switches();
  Scheduler::stop();
  return outcome;
}

class ResidentUnderThreads : public EngineTest {};
std::vector<EngineInfo> limiting() {
  return engines_that([](const EngineInfo& e) { return e.limits_resident && isolates(e); });
}
ENGINE_SUITE(ResidentUnderThreads, limiting);

TEST_P(ResidentUnderThreads, LosesNothing) {
  std::uint64_t given_back = 0;
  for (const Configuration& configuration : configurations)
    for (std::uint64_t seed = 1; seed <= 12 / scale; ++seed) {
      const Outcome outcome = run(GetParam(), configuration, seed, 40);
      ASSERT_EQ("", outcome.wrong) << configuration.name << ", seed " << seed;
      EXPECT_GT(outcome.switches, 20U);
      given_back += outcome.given_back;
    }
  EXPECT_GT(given_back, 500U / scale);
  this->RecordProperty("given_back", static_cast<int>(given_back));
}

}  // namespace
}  // namespace perdure::test
