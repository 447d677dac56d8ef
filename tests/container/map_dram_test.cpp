// SPDX-License-Identifier: BSD-3-Clause
//
// hash_map, map and rb_tree on the DRAM stand-in; map_types_dram.cpp has more types of them.
#include "tests/container/map_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, MapSuite, DramPolicy);
}  // namespace perdure::test
