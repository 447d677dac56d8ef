// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure: the text of a key, value or element is a std::string
//
// perdure::string as a key.
#include "../common.hpp"

#include <string>

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
