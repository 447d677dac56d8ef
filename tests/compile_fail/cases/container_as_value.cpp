// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a container's key, value or element is std::string or a trivially copyable type
//
// A container as a container's value: the map would copy its head, and leak its blocks.
#include "../common.hpp"

struct Pair {
  perdure::p<int> a, b;
};
struct Plain {
  int a, b;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::hash_map<int, perdure::vector<int>*> x;
};
#else
struct Wrong {
  perdure::hash_map<int, perdure::vector<int>> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
