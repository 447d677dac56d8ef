// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: perdure: a value in a pool is a number
//
// A class whose private fields can't be seen, in a struct.
#include "../common.hpp"

#include <string>

class Secret {
 public:
  explicit Secret(std::string text = {}) : text_(std::move(text)) {}

 private:
  std::string text_;
};
struct Plain {
  std::string text;
};
struct Closed {
  Secret secret;
};
#ifdef PERDURE_CONTROL
struct Wrong {
  perdure::map<int, Plain> x;
};
#else
struct Wrong {
  perdure::map<int, Closed> x;
};
#endif

int main() { (void)perdure::Pool<Wrong>::open("never-run.perdure"); }
