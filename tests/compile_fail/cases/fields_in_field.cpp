// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure::p<T>: T must be trivially copyable
//
// A struct of p<> fields held whole in a p<>.
#include "../common.hpp"

struct Pair {
  perdure::p<int> a, b;
};
struct Plain {
  int a, b;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::p<Plain> x;
};
#else
struct Wrong {
  perdure::p<Pair> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
