// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: auto x = tx.f. names the field, not its value: write tx.read.f.
//
// A proxy with a name, read as if it were the value that the field had: it would be 5.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    const auto old = tx.read(root.count);
    tx(root.count) = 5;
    tx(root.count) += old;
#else
    const auto old = tx(root.count);
    tx(root.count) = 5;
    tx(root.count) += std::uint64_t{old};
#endif
  });
}
