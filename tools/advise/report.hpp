// SPDX-License-Identifier: BSD-3-Clause
//
// What `perdure advise` says: one JSON document, or the same as tables and sentences. Every
// sentence is made from the figures that stand beside it.
// Thread safety: single-threaded.
#pragma once

#include <string>

#include "tools/advise/matrix.hpp"
#include "tools/json.hpp"

namespace perdure::tool {

struct AdviceInput {
  std::string trace_file, command;  ///< either may be empty
  const engine::WorkloadTrace& trace;
  const MatrixOptions& options;
  const Matrix& matrix;
};

/// "trace", "workload", "replay", "cells" (sorted by mode and throughput), "advice" (sentences, and
/// what a program can act on).
[[nodiscard]] Json describe(const AdviceInput& input);
/// describe()'s document for people.
void print_advice(const Json& document);

}  // namespace perdure::tool
