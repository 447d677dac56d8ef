// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshots under threads that a seed schedules, with switching points between all steps of the
// protocol (snapshot_point): stores, rollbacks, heap ops and checkpoints of some threads, while
// another opens, reads and closes snapshots. What each read finds is compared with the model: the
// state that the transactions up to the snapshot's id make, and the blocks that were allocated in
// it with those that its fields lead to (SNAP-1 to SNAP-7).
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/shadow/instances.hpp"
#include "perdure/engine/shadow/versions.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/crash/scheduler.hpp"
#include "tests/engine/suite.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::test {
namespace {

using conformance::Configuration;
using conformance::configurations;

constexpr std::size_t words = 24, slots = 4, noise_lines = 1024;

struct Root {
  std::array<p<std::uint64_t>, words> word;
  std::array<p<std::uint64_t>, slots> tag;  // of the slot's block
  std::array<ptr<p<std::uint64_t>>, slots> block;
  std::array<p<std::uint64_t>, 8 * noise_lines> noise;  // stored to, to use memory up
};
constexpr std::size_t block_words = 8;  // that are written and read, at the block's beginning

/// All words of a state: of the root, and a sum of each block's.
using State = std::array<std::uint64_t, words + slots>;
using Changes = std::vector<std::pair<std::size_t, std::uint64_t>>;

std::uint64_t content(std::uint64_t tag, std::size_t i) { return base::mix(tag * 16 + i); }

struct Seen {
  std::uint64_t id;
  State state;
  bool whole;  // the blocks have what their tags say
};

struct Outcome {
  std::map<std::uint64_t, Changes> committed;
  std::vector<Seen> seen;
  std::uint64_t opened = 0, expired = 0, switches = 0;
  std::string wrong;

  /// How many reads differ from the model.
  void compare() {
    std::sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) { return a.id < b.id; });
    State model{};
    auto next = committed.begin();
    for (const Seen& s : seen) {
      for (; next != committed.end() && next->first <= s.id; ++next)
        for (const auto& [at, value] : next->second) model[at] = value;
      if (s.whole && s.state == model) continue;
      wrong = "a snapshot of id " + std::to_string(s.id) + (s.whole ? "" : ": a block");
      for (std::size_t i = 0; i < model.size(); ++i)
        if (s.state[i] != model[i])
          wrong += ", word " + std::to_string(i) + ": found " + std::to_string(s.state[i]) +
                   ", expected " + std::to_string(model[i]);
    }
  }
};

struct Oops {};

/// One transaction; returns what it changes.
template <class Tx>
Changes change(Tx& tx, Root& r, std::uint64_t choice, std::uint64_t unique) {
  std::mt19937_64 random(choice);
  Changes changes;
  const std::size_t n = 1 + random() % 3;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = random() % (words - 1);
    const std::uint64_t value = unique * 4 + i;
    if (random() % 4 == 0) {
      const std::uint64_t two[2] = {value, value + 1};
      tx.write_bytes(&r.word[at], two, sizeof two);
      changes.emplace_back(at + 1, value + 1);
    } else {
      tx(r.word[at]) = value;
    }
    changes.emplace_back(at, value);
    Scheduler::point();
  }
  if (random() % 3 == 0) {
    const std::size_t s = random() % slots;
    std::uint64_t tag = 0;
    if (auto* const old = tx.read(r.block[s]); old != nullptr) {
      tx.free(old);
      tx(r.block[s]) = nullptr;
    } else {
      // Whole chunks and small blocks by turns: a new span's bitmap lies where data was.
      const std::size_t bytes = random() % 2 == 0 ? pool::chunk_bytes : 64 << random() % 8;
      auto* const made = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(bytes));
      tag = unique;
      for (std::size_t i = 0; i < block_words; ++i) tx(made[i]) = content(tag, i);
      tx(r.block[s]) = made;
    }
    tx(r.tag[s]) = tag;
    changes.emplace_back(words + s, tag);
    Scheduler::point();
  }
  return changes;
}

template <class Pool>
class Reader {
 public:
  /// It closes a snapshot at one of `closes` steps.
  Reader(Pool& pool, Outcome& outcome, std::uint64_t seed, unsigned closes)
      : pool_(pool), outcome_(outcome), random_(seed), closes_(closes) {}
  void step() {
    if (open_.empty() || (open_.size() < 3 && random_() % 3 == 0)) {
      try {
        open_.push_back(pool_.snapshot());
        ++outcome_.opened;
      } catch (const error& e) {
        if (e.code() != Code::expired) outcome_.wrong = e.what();
      }
    }
    if (!open_.empty()) read(open_[random_() % open_.size()]);
    if (!open_.empty() && random_() % closes_ == 0) {
      const std::size_t at = random_() % open_.size();
      std::swap(open_[at], open_.back());
      open_.pop_back();
    }
  }

 private:
  void read(const Snapshot<Root>& snapshot) {
    Seen seen{snapshot.id(), {}, true};
    try {
      snapshot.view([&](auto& tx, const Root& r) {
        for (std::size_t i = 0; i < words; ++i) seen.state[i] = tx.read(r.word[i]);
        for (std::size_t s = 0; s < slots; ++s) {
          const std::uint64_t tag = seen.state[words + s] = tx.read(r.tag[s]);
          const auto* const block = tx.read(r.block[s]);
          seen.whole &= (block != nullptr) == (tag != 0);
          if (block == nullptr || tag == 0) continue;
          for (std::size_t i = 0; i < block_words; ++i)
            seen.whole &= tx.read(block[i]) == content(tag, i);
        }
      });
      if (random_() % 8 == 0)
        for (const std::string& problem : snapshot.check().problems)
          outcome_.wrong = "a snapshot of id " + std::to_string(seen.id) + ": " + problem;
    } catch (const error& e) {
      if (e.code() != Code::expired || !snapshot.expired()) outcome_.wrong = e.what();
      ++outcome_.expired;
      return;
    }
    outcome_.seen.push_back(seen);
  }
  Pool& pool_;
  Outcome& outcome_;
  std::mt19937_64 random_;
  const unsigned closes_;
  std::deque<Snapshot<Root>> open_;
};

struct Run {
  std::uint64_t seed;
  std::size_t writers = 2;
  unsigned each = 20;
  std::uint64_t memory = std::uint64_t{16} << 20;
  unsigned closes = 4;
  unsigned noise = 0;  // lines that each transaction stores to besides
};

/// The first writer is the calling thread, which has the bias.
template <class Pool>
Outcome run(const EngineInfo& e, const Configuration& configuration, const Run& how) {
  watch_again();  // the limit is for one run
  Shape shape;
  shape.durability = configuration.durability;
  shape.like_a_file = configuration.like_a_file;
  shape.threads = 3;
  shape.data_bytes = shape.max_data_bytes = 24 * pool::chunk_bytes;
  Options options = shape.options(e);
  options.engine_options.set(ShadowOptions{.snapshot_memory = how.memory});
  medium::RecordingOptions recording = shape.medium();
  recording.step = [](medium::Step) { Scheduler::point(); };
  Outcome outcome;
  Scheduler::start(how.seed);
  engine::shadow::snapshot_point = &Scheduler::point;
  {
    auto pool = Pool::try_open_on("recording", options,
                                  medium::RecordingMedium::make(recording).value(), true)
                    .value();
    const auto write = [&](std::size_t t) {
      std::mt19937_64 random(how.seed * 10 + t);
      for (unsigned i = 0; i < how.each; ++i) {
        const std::uint64_t choice = random();
        const bool fails = choice % 6 == 0;
        Changes changes;
        try {
          const auto receipt = pool.update([&](auto& tx, Root& r) {
            changes = change(tx, r, choice, (t + 1) * 1000 + i);
            for (unsigned n = 0; n < how.noise; ++n)
              tx(r.noise[base::mix(choice + n) % noise_lines * 8]) = i;
            if (fails) throw Oops();
          });
          outcome.committed[receipt.id()] = changes;
        } catch (const Oops&) {}
        if (choice % 64 == 1) pool.checkpoint();
      }
    };
    std::vector<std::thread> others;
    bool written = false;
    others.emplace_back([&] {
      Reader<Pool> reader(pool, outcome, how.seed, how.closes);
      do {
        reader.step();
        std::this_thread::yield();
      } while (!written);
      reader.step();
    });
    std::vector<std::thread> writers;
    for (std::size_t t = 1; t < how.writers; ++t) writers.emplace_back(write, t);
    write(0);
    for (auto& w : writers) w.join();
    written = true;
    others.front().join();
    for (const std::string& problem : pool.check().problems) outcome.wrong = problem;
    pool.close();
  }
  engine::shadow::snapshot_point = nullptr;
  outcome.switches = Scheduler::switches();
  Scheduler::stop();
  outcome.compare();
  return outcome;
}

class SnapshotsUnderThreads : public EngineTest {};
std::vector<EngineInfo> with_snapshots() {
  return engines_that([](const EngineInfo& e) { return e.has_snapshots; });
}
ENGINE_SUITE(SnapshotsUnderThreads, with_snapshots);

template <class Pool>
void are_the_model_s(const EngineInfo& e, std::size_t writers, std::uint64_t seeds) {
  std::uint64_t opened = 0, seen = 0;
  for (const Configuration& configuration : configurations)
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const Outcome outcome = run<Pool>(e, configuration, {.seed = seed, .writers = writers});
      ASSERT_EQ("", outcome.wrong) << configuration.name << ", seed " << seed;
      EXPECT_GT(outcome.switches, 20U);
      EXPECT_EQ(outcome.expired, 0U);
      opened += outcome.opened;
      seen += outcome.seen.size();
    }
  EXPECT_GT(opened, seeds * 2);
  EXPECT_GT(seen, opened);
}

TEST_P(SnapshotsUnderThreads, AreTheModelS) {
  are_the_model_s<AnyPool<Root>>(GetParam(), 2, 40 / scale);
}

TEST_P(SnapshotsUnderThreads, AreTheModelSBesideTheThreadThatIsAlone) {
  are_the_model_s<AnyPool<Root>>(GetParam(), 1, 15 / scale);
}

TEST_P(SnapshotsUnderThreads, AreTheModelSOrExpire) {
  std::uint64_t expired = 0, seen = 0;
  for (std::uint64_t seed = 1; seed <= 20 / scale; ++seed) {
    const Outcome outcome = run<AnyPool<Root>>(
        GetParam(), configurations[0],
        {.seed = seed, .writers = 2, .each = 100, .memory = 64 << 10, .closes = 60, .noise = 10});
    ASSERT_EQ("", outcome.wrong) << "seed " << seed;
    expired += outcome.expired;
    seen += outcome.seen.size();
  }
  EXPECT_GT(expired, 0U);
  EXPECT_GT(seen, 0U);
}

// The stores of an engine that is compiled in take a path of their own (shadow/writer.hpp).
TEST(SnapshotsOfACompiledEngine, AreTheModelS) {
  const EngineInfo& e = *engine::find_instance("shadow");
  are_the_model_s<Pool<Root, engines<shadow>>>(e, 1, 20 / scale);
  are_the_model_s<Pool<Root, engines<shadow>>>(e, 2, 20 / scale);
}

}  // namespace
}  // namespace perdure::test
