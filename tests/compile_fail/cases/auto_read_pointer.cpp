// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: auto x = tx.f. names the field, not its value: write tx.read.f.
//
// A pointer's proxy with a name, read as if it were the value that the field had.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    Node* const old = tx(root.head);
    tx(root.head) = nullptr;
    perdure::destroy(tx, old);
#else
    auto old = tx(root.head);
    tx(root.head) = nullptr;
    Node* const node = old;
    perdure::destroy(tx, node);
#endif
  });
}
