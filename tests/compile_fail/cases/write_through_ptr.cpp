// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a plain dereference of a pool pointer: write tx.x.->field
//
// A write through a ptr<T> without the transaction, on each of the two steps.
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
