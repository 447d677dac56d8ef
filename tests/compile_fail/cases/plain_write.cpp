// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a plain write of pool data: write tx.x. = value, inside update|selected deleted operator
// .=
//
// A field of the pool written without the transaction: it would be neither logged nor isolated.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    tx(root.count) = 1;
#else
    (void)tx;
    root.count = 1;
#endif
  });
}
