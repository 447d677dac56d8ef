// SPDX-License-Identifier: BSD-3-Clause
//
// Walks during changes on the DRAM stand-in, which finds reads of freed memory.
#include "tests/container/walk_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, WalkSuite, DramPolicy);
}  // namespace perdure::test
