// SPDX-License-Identifier: BSD-3-Clause
//
// The output of `perdure advise`: one JSON document, or the same as tables and sentences. Every
// sentence is made from the figures beside it.
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
/// fields that a program can act on).
[[nodiscard]] Json describe(const AdviceInput& input);
/// Prints describe()'s document for a human reader.
void print_advice(const Json& document);

}  // namespace perdure::tool
