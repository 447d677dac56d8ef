// SPDX-License-Identifier: BSD-3-Clause
//
// Walks during changes on the DRAM stand-in, which finds reads of freed memory.
#include "tests/container/walk_map_suite.hpp"
#include "tests/container/walk_sequence_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, MapWalkSuite, DramPolicy);
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, SequenceWalkSuite, DramPolicy);
}  // namespace perdure::test
