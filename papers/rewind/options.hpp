// SPDX-License-Identifier: BSD-3-Clause
//
// What can be chosen for REWIND when a pool is opened (Options::engine_options).
#pragma once

#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::papers {

struct RewindOptions {
  /// Batch logs: the number of records that share a fence, 2 to 1000; 0: 8. It may differ at each
  /// opening.
  std::uint32_t log_group = 0;

  /// Returns ok, or `invalid` for a value out of range.
  [[nodiscard]] Status check(const std::string& path) const {
    constexpr std::uint32_t max_in_a_group = 1000;  // a bucket's cells
    if (log_group != 1 && log_group <= max_in_a_group) return {};
    return failure(
        Code::invalid, path, "RewindOptions::log_group " + std::to_string(log_group),
        "2 to 1000, or 0 for the engine's own",
        "leave it 0; a log without groups is an engine of its own, rewind-1l-nfp-optimized");
  }
};

}  // namespace perdure::papers
