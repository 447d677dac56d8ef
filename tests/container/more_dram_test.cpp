// SPDX-License-Identifier: BSD-3-Clause
//
// Sets, multimap, deque, priority_queue, hooked_list and erase_if() on the DRAM stand-in.
#include "tests/container/more_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, MoreSuite, DramPolicy);
}  // namespace perdure::test
