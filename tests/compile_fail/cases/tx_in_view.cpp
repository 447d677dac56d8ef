// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: view\(\)'s lambda can't be called with a perdure::rtx&
//
// A view with a transaction that may change the pool.
#include "../common.hpp"

#ifdef PERDURE_CONTROL
using Transaction = perdure::rtx;
#else
using Transaction = perdure::tx;
#endif

int main() {
  auto pool = open_pool();
  (void)pool.view([](Transaction& tx, const Root& root) { return tx.read(root.count); });
}
