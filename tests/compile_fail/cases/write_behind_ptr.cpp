// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a plain write of pool data: write tx.x. = value, inside update|selected deleted operator
// .=
//
// The pointer is read through the transaction, but its target is written without it.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    tx(tx(root.head)->value) = 1;
#else
    tx(root.head)->value = 1;
#endif
  });
}
