// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a container's key, value or element is std::string or a trivially copyable type
//
// perdure::string as a key: it would be compared by the address of its block.
#include "../common.hpp"

#include <string>

struct Pair {
  perdure::p<int> a, b;
};
struct Plain {
  int a, b;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::map<std::string, int> x;
};
#else
struct Wrong {
  perdure::map<perdure::string, int> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
