// SPDX-License-Identifier: BSD-3-Clause
//
// libFuzzer's entry point to pool_target.hpp: `./dev build --preset fuzz`, then
// build/fuzz/tests/fuzz/pool_fuzz -max_total_time=60.
#include "tests/fuzz/pool_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  perdure::fuzz::open_mutated(data, size);
  return 0;
}
