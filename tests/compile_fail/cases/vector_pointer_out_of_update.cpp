// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// Pool pointers in a vector as the result of update().
#include "../common.hpp"

#include <vector>

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto receipt = pool.update([](auto& tx, Places& root) {
#ifdef PERDURE_CONTROL
    return std::vector<std::uint64_t>(1, tx.read(tx.read(root.head)->value));
#else
    return std::vector<const Node*>(1, tx.read(root.head));
#endif
  });
  receipt.wait();
}
