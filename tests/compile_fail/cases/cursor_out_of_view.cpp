// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: view..'s lambda must not return a pool pointer, reference or cursor
//
// A cursor as the result of view().
#include "../common.hpp"

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto result = pool.view([](auto& tx, const Places& root) {
#ifdef PERDURE_CONTROL
    return root.hash_map.begin(tx).key(tx);
#else
    return root.hash_map.begin(tx);
#endif
  });
  (void)result;
}
