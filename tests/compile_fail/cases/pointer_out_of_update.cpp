// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// A pool pointer as the result of update(): after it, nothing isolates or keeps what it points to.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  auto receipt = pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    return tx.read(tx.read(root.head)->value);
#else
    Node* const head = tx.read(root.head);
    return head;
#endif
  });
  receipt.wait();
}
