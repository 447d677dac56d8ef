// SPDX-License-Identifier: BSD-3-Clause
//
// The container suite on pools of an engine that the environment names (pool_policy.hpp): compiled
// once, run for several engines.
#include "tests/container/map_suite.hpp"
#include "tests/container/pool_policy.hpp"
#include "tests/container/sequence_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, MapSuite, PoolPolicy<any_engine>);
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, SequenceSuite, PoolPolicy<any_engine>);
}  // namespace perdure::test
