// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a std::string keeps its text in DRAM
//
// A std::string in a pool: its text would lie in the memory of a process that has ended.
#include "../common.hpp"

#include <string>

struct Named {
#ifdef PERDURE_CONTROL
  perdure::string name;
#else
  std::string name;
#endif
  perdure::p<std::uint64_t> count;
};

int main() { (void)perdure::layout_of<Named>(); }
