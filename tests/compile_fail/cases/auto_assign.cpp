// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: auto x = tx.f. names the field: write tx.f. = value
//
// A proxy with a name, written through.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    tx(root.count) = 5;
#else
    auto count = tx(root.count);
    count = 5;
#endif
  });
}
