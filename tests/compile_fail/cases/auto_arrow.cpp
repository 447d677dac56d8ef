// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: auto x = tx.f. names the field, not its value: write tx.read.f.
//
// A pointer's proxy with a name, dereferenced.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    const auto node = tx.read(root.head);
    ++tx(node->value);
#else
    const auto node = tx(root.head);
    ++tx(node->value);
#endif
  });
}
