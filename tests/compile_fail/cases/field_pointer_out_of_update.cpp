// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// tx(field) of a pointer as the result of update(): its value is a pool pointer.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  auto receipt = pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    return tx(root.count);
#else
    return tx(root.head);
#endif
  });
  receipt.wait();
}
