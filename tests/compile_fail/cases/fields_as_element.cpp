// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a container's key, value or element is std::string or a trivially copyable type
//
// A struct of p<> fields as a vector's element.
#include "../common.hpp"

struct Pair {
  perdure::p<int> a, b;
};
struct Plain {
  int a, b;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::vector<Plain> x;
};
#else
struct Wrong {
  perdure::vector<Pair> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
