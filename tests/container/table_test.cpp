// SPDX-License-Identifier: BSD-3-Clause
//
// The table's suite on the engine that PERDURE_TEST_ENGINE names.
#include "tests/container/table_suite.hpp"

#include "tests/container/pool_policy.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, TableSuite, PoolPolicy<any_engine>);
}  // namespace perdure::test
