// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the small pools in which the tests of this folder change layouts. Thread safety: a
// pure function.
#pragma once

#include "perdure/api/options.hpp"

namespace perdure::test {

/// A pool of up to 256 MiB with a log of 4 MiB.
inline Options small_pool() {
  Options options;
  options.creation.max_size = 256 << 20;
  options.creation.log_size = 4 << 20;
  return options;
}

}  // namespace perdure::test
