// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure::queue: an element is popped by value
//
// A container as a queue's element: it could not be popped.
#include "../common.hpp"

#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::list<perdure::vector<int>> x;
};
#else
struct Wrong {
  perdure::queue<perdure::vector<int>> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
