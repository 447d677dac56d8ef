// SPDX-License-Identifier: BSD-3-Clause
//
// The sequences' suite of values on the DRAM stand-in.
#include "tests/container/sequence_values_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, SequenceValuesSuite, SlowDramPolicy);
}  // namespace perdure::test
