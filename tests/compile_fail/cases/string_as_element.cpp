// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a container's key, value or element is std::string or a trivially copyable type
//
// perdure::string as a queue's element.
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
  perdure::queue<std::string> x;
};
#else
struct Wrong {
  perdure::queue<perdure::string> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
