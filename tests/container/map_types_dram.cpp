// SPDX-License-Identifier: BSD-3-Clause
//
// hash_map, map and rb_tree of many more types on the DRAM stand-in.
#include "tests/container/map_types_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, MapTypesSuite, DramPolicy);
}  // namespace perdure::test
