// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND in all twelve compositions, taken apart by the crash explorer; with one log for the pool and with a log a thread, on memory and on what
// behaves as a file.
#include <gtest/gtest.h>

#include "perdure/crash/crashtest.hpp"
#include "perdure/engine/rewind/rewind.hpp"
#include "tests/conformance/workloads.hpp"

namespace perdure::test {
namespace {

using log::LogVersion;

template <unsigned Layers, bool Force, LogVersion Version>
struct Tag {
  using How = engine::rewind::Composed<Layers, Force, Version>;
  static constexpr std::string_view name = How::name;
  static constexpr Isolation isolation = Isolation::full;
  using type = engine::rewind::Rewind<tm::GlobalLock, How>;
};
using Compositions =
    ::testing::Types<Tag<1, false, LogVersion::simple>, Tag<1, false, LogVersion::optimized>, Tag<1, false, LogVersion::batch>,
                     Tag<1, true, LogVersion::simple>, Tag<1, true, LogVersion::optimized>, Tag<1, true, LogVersion::batch>,
                     Tag<2, false, LogVersion::simple>, Tag<2, false, LogVersion::optimized>, Tag<2, false, LogVersion::batch>,
                     Tag<2, true, LogVersion::simple>, Tag<2, true, LogVersion::optimized>, Tag<2, true, LogVersion::batch>>;

struct Names {
  template <class T>
  static std::string GetName(int) {
    return std::string(T::name);
  }
};
template <class T>
class Rewind : public ::testing::Test {
 protected:
  template <class Workload>
  void explore() {
    for (const auto model : {crash::Model::px86, crash::Model::adversarial})
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        crashtest::Plan plan;
        plan.steps = 24;
        plan.seed = seed;
        plan.rings = static_cast<std::uint32_t>(seed);
        plan.like_a_file = seed == 2;
        plan.ring_bytes = T::type::composition.layers == 1 ? 32768 : 65536;
        plan.explore.model = model;
        plan.explore.most_recoveries = 4000;
        const auto report = crashtest::explore<Workload, T>(plan);
        EXPECT_EQ("", report.failure);
        EXPECT_GT(report.counts.distinct, 1000U);
      }
  }
};
TYPED_TEST_SUITE(Rewind, Compositions, Names);

TYPED_TEST(Rewind, LosesNoSwaps) { this->template explore<conformance::Swaps>(); }
TYPED_TEST(Rewind, LosesNoBlocks) { this->template explore<conformance::Churn>(); }

}  // namespace
}  // namespace perdure::test
