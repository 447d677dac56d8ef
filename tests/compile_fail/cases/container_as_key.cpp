// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure: a container can.t be a key
//
// A container as a key.
#include "../common.hpp"

#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::map<int, perdure::vector<int>> x;
};
#else
struct Wrong {
  perdure::map<perdure::vector<int>, int> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
