// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// A cursor as the result of update(): after it, the place may belong to another element, or to
// none.
#include "../common.hpp"

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto receipt = pool.update([](auto& tx, Places& root) {
#ifdef PERDURE_CONTROL
    return root.map.begin(tx).key(tx);
#else
    return root.map.begin(tx);
#endif
  });
  receipt.wait();
}
