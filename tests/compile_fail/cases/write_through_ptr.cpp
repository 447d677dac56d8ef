// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: non-pointer type|is not a pointer
//
// A write through a ptr<T> without the transaction, on either step of the way.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    tx(tx(root.head)->value) = 1;
#else
    (void)tx;
    root.head->value = 1;
#endif
  });
}
