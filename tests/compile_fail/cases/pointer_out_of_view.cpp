// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: view..'s lambda must not return a pool pointer, reference or cursor
//
// A pool pointer as the result of view().
#include "../common.hpp"

int main() {
  auto pool = open_pool();
#ifdef PERDURE_CONTROL
  const bool empty = pool.view([](auto& tx, const Root& root) { return tx(root.head) == nullptr; });
#else
  const bool empty =
      pool.view([](auto& tx, const Root& root) -> const Node* { return tx(root.head); }) == nullptr;
#endif
  return empty ? 1 : 0;
}
