// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// A reference into the pool as the result of update().
#include "../common.hpp"

int main() {
  auto pool = open_pool();
#ifdef PERDURE_CONTROL
  auto receipt = pool.update([](auto& tx, Root& root) { return tx.read(root.count); });
#else
  auto receipt = pool.update([](auto& tx, Root& root) -> perdure::p<std::uint64_t>& {
    (void)tx;
    return root.count;
  });
#endif
  receipt.wait();
}
