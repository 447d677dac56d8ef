// SPDX-License-Identifier: BSD-3-Clause
//
// The container suite's maps on pools of the engine `undo`.
#include "perdure/engine/undo/instances.hpp"
#include "tests/container/map_suite.hpp"
#include "tests/container/pool_policy.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, MapSuite, PoolPolicy<undo>);
}  // namespace perdure::test
