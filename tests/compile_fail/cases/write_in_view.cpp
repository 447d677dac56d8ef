// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: no member named .write
//
// A write inside view(): a read-only transaction writes nothing (LAW-8).
#include "../common.hpp"

int main() {
  auto pool = open_pool();
  pool.view([](auto& tx, const Root& root) {
#ifdef PERDURE_CONTROL
    return tx.read(root.count);
#else
    tx.write(root.count, std::uint64_t{1});
    return true;
#endif
  });
}
