// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// A cursor in a pair as the result of update().
#include "../common.hpp"

#include <utility>

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto receipt = pool.update([](auto& tx, Places& root) {
#ifdef PERDURE_CONTROL
    return std::pair(true, root.list.begin(tx).value(tx));
#else
    return std::pair(true, root.list.begin(tx));
#endif
  });
  receipt.wait();
}
