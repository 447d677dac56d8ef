// SPDX-License-Identifier: BSD-3-Clause
//
// The maps' suite of values on the DRAM stand-in.
#include "tests/container/map_values_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, MapValuesSuite, SlowDramPolicy);
}  // namespace perdure::test
