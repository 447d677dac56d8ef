// SPDX-License-Identifier: BSD-3-Clause
//
// The sequences' suite of values on the engine that PERDURE_TEST_ENGINE names.
#include "tests/container/pool_policy.hpp"
#include "tests/container/sequence_values_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, SequenceValuesSuite, SlowPoolPolicy<any_engine>);
}  // namespace perdure::test
