// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure::p<T>: T must be trivially copyable
//
// A container held whole in a p<>.
#include "../common.hpp"

struct Pair {
  perdure::p<int> a, b;
};
struct Plain {
  int a, b;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::map<int, int> x;
};
#else
struct Wrong {
  perdure::p<perdure::map<int, int>> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
