// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: lvalue required|expression is not assignable
//
// An assignment inside view(), through the call that reads.
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.view([](auto& tx, const Root& root) {
#ifdef PERDURE_CONTROL
    const std::uint64_t count = tx(root.count);
    return count;
#else
    tx(root.count) = 1;
    return true;
#endif
  });
}
