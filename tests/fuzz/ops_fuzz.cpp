// SPDX-License-Identifier: BSD-3-Clause
//
// libFuzzer's entry point to ops_target.hpp: ./dev fuzz ops.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/ops_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string found = perdure::fuzz::play(data, size);
  if (found.empty()) return 0;
  std::fprintf(stderr, "%s\n", found.c_str());
  std::abort();
}
