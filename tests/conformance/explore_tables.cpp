// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/explore.hpp"
#include "tests/conformance/workloads.hpp"

namespace perdure::conformance {
std::vector<Row> explore_tables(const Budget& budget) { return explore_all<Tables>(budget); }
}  // namespace perdure::conformance
