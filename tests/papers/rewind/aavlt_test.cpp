// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's log index: a lookup finds what was inserted and not removed, in order; every power cut
// leaves the tree before or after an operation.
#include "papers/rewind/aavlt.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/papers/rewind/nvm_suite.hpp"

namespace perdure::test {
namespace {

constexpr std::uint64_t seed = 77, most = 100;

struct Rig : LogRig {
  Rig(medium::Medium& medium, const Version& v, std::uint64_t buckets = 24)
      : LogRig(medium, v, buckets, papers::rewind::AtomicAvlTree::max_writes(most)),
        tree(nvm, arena, *log, root, seed) {
    tree.prepare(most);
  }
  /// Records by key, in order; here a key leads to a number.
  [[nodiscard]] std::vector<std::uint64_t> records() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t r = tree.above(0); r != 0; r = tree.above(r / 64)) all.push_back(r);
    return all;
  }
  void insert(std::uint64_t key) { tree.insert(key, key * 64); }
  papers::rewind::AtomicAvlTree tree;
};

class AtomicAvlTrees : public ::testing::TestWithParam<Version> {};
INSTANTIATE_TEST_SUITE_P(All, AtomicAvlTrees, ::testing::ValuesIn(versions), version_name);

TEST_P(AtomicAvlTrees, FindWhatIsInserted) {
  auto medium = make_medium();
  Rig rig(*medium, GetParam());
  std::map<std::uint64_t, std::uint64_t> model;
  crash::Random random(3);
  const std::uint64_t lines = rig.arena.free_lines();
  for (std::uint64_t i = 1; i <= 1500; ++i) {
    // At the end, like LSNs, and anywhere.
    const std::uint64_t key = i % 2 == 0 ? 1000 + i : 1 + random() % 900;
    if (model.contains(key) || model.size() == 40) {
      const auto victim =
          model.contains(key)
              ? model.find(key)
              : std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
      rig.tree.remove(victim->first);
      model.erase(victim);
    } else {
      ASSERT_TRUE(rig.tree.fits(1, GetParam().cells == 0 ? 2 : 1));
      rig.insert(key);
      model[key] = key * 64;
    }
    ASSERT_EQ(model.size(), rig.tree.size());
    for (const auto& [k, r] : model) ASSERT_EQ(r, rig.tree.find(k));
    EXPECT_EQ(0U, rig.tree.find(950));
    EXPECT_EQ(model.empty() ? 0 : model.rbegin()->second, rig.tree.last());
    const auto above = model.upper_bound(key);
    EXPECT_EQ(above == model.end() ? 0 : above->second, rig.tree.above(key));
    const auto below = model.lower_bound(key);
    EXPECT_EQ(below == model.begin() ? 0 : std::prev(below)->second, rig.tree.below(key));
    ASSERT_EQ(lines - model.size(), rig.arena.free_lines());
    if (i % 100 == 0) {  // another index object finds the same, in balance
      Rig again(*medium, GetParam());
      ASSERT_EQ("", again.log->recover().message());
      ASSERT_EQ("", again.tree.recover().message());
      ASSERT_EQ(rig.records(), again.records());
    }
  }
}

// One fence for an operation's records and one for their pointers, whatever their number; two for
// END, one for the removal of the others, one for that of END.
TEST(AtomicAvlTree, AnOperationCostsSixFences) {
  for (const Version version : {Version{"optimized", 1000, 1}, Version{"batch", 1000, 8}}) {
    auto medium = make_medium();
    Rig rig(*medium, version, 1);
    const auto fences = [&] { return rig.nvm.fences() + rig.nvm.synchronous_stores(); };
    rig.insert(100);  // also makes the bucket
    for (std::uint64_t key = 1; key <= 30; ++key) {
      const std::uint64_t before = fences();
      key % 3 == 0 ? rig.tree.remove(key - 1) : rig.insert(key);
      EXPECT_EQ(6U, fences() - before) << version.name << " " << key;
    }
  }
}

class Recovered final : public crash::Subject {
 public:
  explicit Recovered(const Version& version) : version_(version) {}
  crash::Verdict judge(std::unique_ptr<medium::Medium> medium, const std::byte*,
                       const crash::Crash& crash) override {
    Rig rig(*medium, version_);
    Status s = rig.log->recover();
    if (s.ok()) s = rig.tree.recover();
    if (!s.ok()) return {"refused: " + s.message(), 0};
    const auto found = rig.records();
    for (std::uint64_t k = crash.least; k <= crash.most && k < states.size(); ++k)
      if (states[k] == found) return {{}, base::hash_bytes(found.data(), found.size() * 8, 1)};
    return {"holds " + std::to_string(found.size()) + " keys, as after no operation from " +
                std::to_string(crash.least) + " to " + std::to_string(crash.most),
            0};
  }
  std::vector<std::vector<std::uint64_t>> states{{}};

 private:
  const Version version_;
};

TEST_P(AtomicAvlTrees, EveryPowerCutLeavesAStateThatWas) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto medium = make_medium();
    crash::Image image(medium->begin_trace(), data_bytes);
    Recovered subject(GetParam());
    Rig rig(*medium, GetParam());
    crash::Random random(4);
    std::uint64_t step = 0;
    for (; step < 60; ++step) {
      medium->begin(step);
      const auto keys = rig.records();
      if (keys.size() < 4 || (keys.size() < 12 && random() % 3 != 0))
        rig.insert(random() % 4 == 0 ? 500 - step : 1000 + step);
      else
        rig.tree.remove(keys[random() % keys.size()] / 64);
      subject.states.push_back(rig.records());
      medium->done(step + 1);
    }
    EXPECT_GT(explore(*medium, image, subject, model).distinct, 300U);
  }
}

}  // namespace
}  // namespace perdure::test
