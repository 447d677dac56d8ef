// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: auto x = tx.f. names the field, not its value: write tx.read.f.
//
// A field written from a proxy with a name.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    const std::uint64_t old = tx(root.count);
    tx(tx(root.head)->value) = old;
#else
    auto old = tx(root.count);
    tx(tx(root.head)->value) = old;
#endif
  });
}
