// SPDX-License-Identifier: BSD-3-Clause
//
// The executable that alone contains libpmemobj, so that the library is linked into nothing else.
// libpmem reads PMEM_IS_PMEM_FORCE when it is loaded: 1 makes it treat a tmpfs file as persistent
// memory (flushes and fences, no msync), which is what is compared here.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "bench/systems/systems.hpp"

int main(int argc, char** argv) {
  const char* forced = std::getenv("PMEM_IS_PMEM_FORCE");
  if (forced == nullptr || std::strcmp(forced, "0") == 0) {
    ::setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    // It returns only if /proc is missing: then describe() shows what was in force.
    ::execv("/proc/self/exe", argv);
  }
  bench::Systems systems;
  bench::add_pmemobj(systems);
  return bench::serve(argc, argv, systems);
}
