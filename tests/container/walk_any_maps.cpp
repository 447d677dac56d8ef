// SPDX-License-Identifier: BSD-3-Clause
//
// Walks of maps during changes on pools of the engine that PERDURE_TEST_ENGINE names.
#include "tests/container/pool_policy.hpp"
#include "tests/container/walk_map_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, MapWalkSuite, PoolPolicy<any_engine>);
}  // namespace perdure::test
