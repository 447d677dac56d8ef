// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a plain read of pool data: read it with tx
//
// A field of the pool read without the transaction: some engines hold the newest value elsewhere.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  return static_cast<int>(pool.view([](auto& tx, const Root& root) {
#ifdef PERDURE_CONTROL
    const std::uint64_t count = tx(root.count);
#else
    (void)tx;
    const std::uint64_t count = root.count;
#endif
    return count;
  }));
}
