// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: auto x = tx.f. names the field, not its value: write tx.read.f.
//
// A proxy with a name, compared.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    if (const std::uint64_t old = tx(root.count); old == 5) tx(root.count) = 6;
#else
    if (auto old = tx(root.count); old == 5) tx(root.count) = 6;
#endif
  });
}
