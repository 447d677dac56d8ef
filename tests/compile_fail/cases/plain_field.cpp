// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a plain number or enum in a struct that lies in a pool
//
// A root with a plain number in it: nothing would prevent a program from reading and writing it
// without the transaction.
#include "../common.hpp"

struct Loose {
#ifdef PERDURE_CONTROL
  perdure::p<std::uint64_t> count;
#else
  std::uint64_t count;
#endif
};

int main() { (void)perdure::Pool<Loose>::open("never-run.perdure"); }
