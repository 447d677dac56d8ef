// SPDX-License-Identifier: BSD-3-Clause
//
// Walks of sequences during changes on pools of the engine that PERDURE_TEST_ENGINE names.
#include "tests/container/pool_policy.hpp"
#include "tests/container/walk_sequence_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, SequenceWalkSuite, PoolPolicy<any_engine>);
}  // namespace perdure::test
