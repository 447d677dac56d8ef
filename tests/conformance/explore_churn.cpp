// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/explore.hpp"
#include "tests/conformance/workloads.hpp"

namespace perdure::conformance {
std::vector<Row> explore_churn(const Budget& budget) { return explore_all<Churn>(budget); }
std::vector<Row> explore_raised(const Budget& budget) { return explore_all<Raised>(budget); }
}  // namespace perdure::conformance
