// SPDX-License-Identifier: BSD-3-Clause
//
// The maps' suite of values on the engine that PERDURE_TEST_ENGINE names.
#include "tests/container/map_values_suite.hpp"
#include "tests/container/pool_policy.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, MapValuesSuite, SlowPoolPolicy<any_engine>);
}  // namespace perdure::test
