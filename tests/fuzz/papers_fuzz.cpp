// SPDX-License-Identifier: BSD-3-Clause
//
// libFuzzer's entry point to papers_target.hpp: `./dev fuzz papers`.
#include "tests/fuzz/papers_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  perdure::fuzz::open_mutated_of_papers(data, size);
  return 0;
}
