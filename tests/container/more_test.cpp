// SPDX-License-Identifier: BSD-3-Clause
//
// Sets, multimap, deque, priority_queue, hooked_list and erase_if() on the engine that
// PERDURE_TEST_ENGINE names.
#include "tests/container/more_suite.hpp"
#include "tests/container/pool_policy.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, MoreSuite, PoolPolicy<any_engine>);
}  // namespace perdure::test
