// SPDX-License-Identifier: BSD-3-Clause
//
// Walks during changes on pools of the engines `shadow` and `undo`.
#include "perdure/engine/undo/instances.hpp"
#include "tests/container/pool_policy.hpp"
#include "tests/container/walk_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Undo, WalkSuite, PoolPolicy<undo>);
}  // namespace perdure::test
