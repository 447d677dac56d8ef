// SPDX-License-Identifier: BSD-3-Clause
//
// The container suite's maps on pools of an engine that the environment names
// (pool_policy.hpp): compiled once, run on several.
#include "tests/container/map_suite.hpp"
#include "tests/container/pool_policy.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, MapSuite, PoolPolicy<any_engine>);
}  // namespace perdure::test
