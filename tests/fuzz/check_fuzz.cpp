// SPDX-License-Identifier: BSD-3-Clause
//
// libFuzzer's entry point to check_target.hpp: `./dev fuzz check`.
#include "tests/fuzz/check_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)perdure::fuzz::Damaged::one().walk(data, size);
  return 0;
}
