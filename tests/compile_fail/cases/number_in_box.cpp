// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure::box: a box holds a plain struct
//
// A number in a box.
#include "../common.hpp"

struct Plain {
  int a;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::box<Plain> x;
};
#else
struct Wrong {
  perdure::box<int> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
