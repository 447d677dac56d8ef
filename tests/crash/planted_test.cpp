// SPDX-License-Identifier: BSD-3-Clause
//
// Tests whether the explorer finds what it should find: a correct log passes; each of ten bugs
// planted in it must be found.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "perdure/pool/address.hpp"
#include "testing/crash_medium.hpp"
#include "testing/explorer.hpp"
#include "tests/crash/toy_log.hpp"

namespace perdure::test {
namespace {

using State = std::array<std::uint64_t, ToyLog::bitmap + 1>;

class Toy final : public crash::Subject {
 public:
  explicit Toy(Bug bug) : bug_(bug) {}
  crash::Verdict judge(std::unique_ptr<medium::Medium> medium, const std::byte*,
                       const crash::Crash& crash) override {
    ToyLog log(*medium, bug_);
    log.recover();
    State state;
    for (std::size_t i = 0; i < state.size(); ++i) state[i] = log.data(i);
    crash::Verdict verdict{{}, base::hash_bytes(state.data(), sizeof state, 0)};
    const std::uint64_t n = log.transactions();
    if (n >= crash.least && n <= crash.most && n < states.size() && states[n] == state)
      return verdict;
    verdict.problem =
        "not the state after " + std::to_string(n) + " transactions, or of these too few";
    for (std::uint64_t b = 0; b < ToyLog::blocks; ++b)
      if ((state[ToyLog::bitmap] >> b & 1) != (state[ToyLog::owner + b] != 0 ? 1U : 0U))
        verdict.problem = state[ToyLog::owner + b] != 0 ? "a block is owned and free"
                                                        : "a block is allocated and nobody's";
    return verdict;
  }
  std::vector<State> states;

 private:
  const Bug bug_;
};

struct Found {
  std::string failure;
  crash::Counts counts;
};

Found explore(Bug bug, crash::Model model, std::uint64_t seed, unsigned depth = 2) {
  medium::CrashOptions options;
  options.log_bytes = ToyLog::log_bytes;
  options.data_bytes = options.max_data_bytes = ToyLog::data_bytes;
  auto medium = medium::CrashMedium::make(options).value();
  ToyLog log(*medium, bug);
  log.format();
  Toy subject(bug);
  State now{};
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = log.data(i);
  subject.states.push_back(now);
  crash::Image image(medium->begin_trace(), ToyLog::data_bytes);
  crash::Random random(seed);
  for (std::uint64_t step = 0; step < 40; ++step) {
    ToyLog::Pairs pairs;
    for (std::uint64_t n = 1 + random() % 6; n > 0; --n)
      pairs.emplace_back(random() % ToyLog::words, random() % 1000);
    if (random() % 2 == 0) {  // a block is allocated or freed
      const std::uint64_t b = random() % ToyLog::blocks;
      pairs.emplace_back(ToyLog::owner + b, now[ToyLog::owner + b] != 0 ? 0 : b + 1);
      pairs.emplace_back(ToyLog::bitmap, now[ToyLog::bitmap] ^ std::uint64_t{1} << b);
    }
    for (const auto& [word, value] : pairs) now[word] = value;
    subject.states.push_back(now);
    medium->begin(step);
    log.commit(pairs, [&] { medium->done(step + 1); });
  }
  const std::uint8_t uuid[16] = {7};
  // The block is free again at once.
  const std::uint64_t base =
      pool::AddressRange::choose(uuid, options.data_bytes, "toy").value().base();
  auto arena = crash::Arena::make({options.log_bytes, options.data_bytes, base}).value();
  crash::ExploreOptions how;
  how.model = model;
  how.seed = seed;
  how.depth = depth;
  crash::Seen seen;
  crash::Explorer explorer(*arena, image, subject, how, seen);
  explorer.run(medium->end_trace());
  return {explorer.failure(), explorer.counts()};
}

constexpr std::array models = {crash::Model::px86, crash::Model::adversarial};

TEST(Planted, ALogThatIsRightPasses) {
  for (const auto model : models)
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Found f = explore(Bug::none, model, seed);
      EXPECT_EQ("", f.failure);
      EXPECT_GT(f.counts.distinct, 1000U);
      EXPECT_EQ(2U, f.counts.deepest);
    }
}

class PlantedBug : public ::testing::TestWithParam<Bug> {};
TEST_P(PlantedBug, IsFound) {
  for (const auto model : models) {
    const Found f = explore(GetParam(), model, 1);
    EXPECT_NE("", f.failure) << "not found by the "
                             << (model == crash::Model::px86 ? "px86" : "adversarial")
                             << " model after " << f.counts.recoveries << " recoveries";
  }
}
INSTANTIATE_TEST_SUITE_P(Ten, PlantedBug,
                         ::testing::Values(Bug::missing_flush, Bug::missing_fence,
                                           Bug::fence_too_early, Bug::mark_before_data,
                                           Bug::recovery_not_repeatable, Bug::leak,
                                           Bug::double_free, Bug::early_acknowledgement, Bug::hole,
                                           Bug::torn_header));

TEST(Planted, ARecoveryThatCanNotBeRepeatedIsFoundByPowerCutsInItAlone) {
  EXPECT_EQ("", explore(Bug::recovery_not_repeatable, crash::Model::px86, 1, 0).failure);
  EXPECT_NE("", explore(Bug::recovery_not_repeatable, crash::Model::px86, 1, 1).failure);
}

TEST(Planted, TheSameSeedFindsTheSame) {
  const Found a = explore(Bug::hole, crash::Model::px86, 5),
              b = explore(Bug::hole, crash::Model::px86, 5);
  EXPECT_EQ(a.failure, b.failure);
  EXPECT_EQ(a.counts.recoveries, b.counts.recoveries);
  EXPECT_NE(std::string::npos, a.failure.find("a power cut before a fence"));
}

}  // namespace
}  // namespace perdure::test
