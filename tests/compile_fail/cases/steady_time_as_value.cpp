// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure: a time in a pool is one of std::chrono::system_clock
//
// A time that means nothing after a restart.
#include "../common.hpp"

#include <chrono>

#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::vector<std::chrono::system_clock::time_point> x;
};
#else
struct Wrong {
  perdure::vector<std::chrono::steady_clock::time_point> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
