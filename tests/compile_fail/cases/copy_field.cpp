// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a plain copy of pool data: read it with tx
//
// A field copied as a whole: a plain read of the pool in disguise.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.update([](auto& tx, Root& root) {
#ifdef PERDURE_CONTROL
    const perdure::p<std::uint64_t> copy(tx.read(root.count));
#else
    (void)tx;
    const perdure::p<std::uint64_t> copy(root.count);
#endif
    (void)copy;
  });
}
