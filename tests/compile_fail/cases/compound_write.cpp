// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a plain write of pool data: write tx.x. .= value, inside update
//
// A field changed in place without the transaction.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    tx(root.count) += 1;
#else
    (void)tx;
    root.count += 1;
#endif
  });
}
