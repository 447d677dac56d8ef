// SPDX-License-Identifier: BSD-3-Clause
//
// Walks beside changes on the DRAM stand-in, which finds reads of memory that was freed.
#include "tests/container/walk_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, WalkSuite, DramPolicy);
}  // namespace perdure::test
