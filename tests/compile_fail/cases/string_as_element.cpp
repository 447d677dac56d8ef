// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure: the text of a key, value or element is a std::string
//
// perdure::string as a queue's element: a block for each would lead to its text.
#include "../common.hpp"

#include <string>

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
