// SPDX-License-Identifier: BSD-3-Clause
//
// The container suite's sequences on pools of the engine `shadow`.
#include "tests/container/pool_policy.hpp"
#include "tests/container/sequence_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, SequenceSuite, PoolPolicy<shadow>);
}  // namespace perdure::test
