// SPDX-License-Identifier: BSD-3-Clause
//
// vector, string, list and queue on the DRAM stand-in.
#include "tests/container/sequence_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, SequenceSuite, DramPolicy);
}  // namespace perdure::test
