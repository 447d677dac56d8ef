// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure::p<T>: T must be trivially copyable
//
// A perdure::string held whole in a p<>: its copy would own the same block.
#include "../common.hpp"

struct Pair {
  perdure::p<int> a, b;
};
struct Plain {
  int a, b;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::string x;
};
#else
struct Wrong {
  perdure::p<perdure::string> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
