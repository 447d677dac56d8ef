// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: no member named .alloc
//
// A block allocated inside view().
#include "../common.hpp"

int main() {
  auto pool = open_pool();
#ifdef PERDURE_CONTROL
  pool.update([](auto& tx, Root&) { tx.free(tx.alloc(100)); });
#else
  pool.view([](auto& tx, const Root&) { (void)tx.alloc(100); });
#endif
}
