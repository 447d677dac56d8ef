// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// A reference into the pool in a struct as the result of update().
#include "../common.hpp"

struct Found {
  int n;
#ifdef PERDURE_CONTROL
  int first;
#else
  perdure::vector<int>& first;
#endif
};

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto receipt = pool.update([](auto& tx, Places& root) {
#ifdef PERDURE_CONTROL
    return Found{1, root.vector.front(tx)};
#else
    return Found{static_cast<int>(root.vector.size(tx)), root.vector};
#endif
  });
  receipt.wait();
}
