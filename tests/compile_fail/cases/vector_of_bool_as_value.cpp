// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure: a std::vector<bool> has no elements that can be pointed to
//
// Bits of a std::vector<bool>.
#include "../common.hpp"

#include <vector>

#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::map<int, std::vector<std::uint8_t>> x;
};
#else
struct Wrong {
  perdure::map<int, std::vector<bool>> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
