// SPDX-License-Identifier: BSD-3-Clause
//
// softwrap_region PATH: runs the atomic region once more, and prints the variables: x, then the
// array's first and last element.
#include "softwrap_region.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PATH\n", argv[0]);
    return 2;
  }
  try {
    softwrap_region::Wraps sw(argv[1]);
    softwrap_region::run(sw);
    const auto& v = sw.root();
    const auto* const p = sw.wrapLoad(&v.p);
    std::printf("%lld %d %d\n", static_cast<long long>(sw.wrapLoad(&v.x)), sw.wrapLoad(p),
                sw.wrapLoad(p + softwrap_region::Variables::elements - 1));
    sw.close();
  } catch (const perdure::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
