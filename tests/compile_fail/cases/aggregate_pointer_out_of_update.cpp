// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: update..'s lambda must not return a pool pointer, reference or cursor
//
// A pool pointer deep in a struct as the result of update().
#include "../common.hpp"

struct Inner {
  bool found = false;
#ifdef PERDURE_CONTROL
  std::uint64_t at = 0;
#else
  Node* at = nullptr;
#endif
};
struct Found {
  std::uint64_t looked_at = 0;
  Inner inner[2];
};

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto receipt = pool.update([](auto& tx, Places& root) {
#ifdef PERDURE_CONTROL
    return Found{1, {{true, tx.read(tx.read(root.head)->value)}, {}}};
#else
    return Found{1, {{true, tx.read(root.head)}, {}}};
#endif
  });
  receipt.wait();
}
