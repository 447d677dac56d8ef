// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: view..'s lambda must not return a pool pointer, reference or cursor
//
// A cursor in a tuple as the result of view().
#include "../common.hpp"

#include <tuple>

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto result = pool.view([](auto& tx, const Places& root) {
#ifdef PERDURE_CONTROL
    return std::tuple(1, root.queue.begin(tx).value(tx), 2);
#else
    return std::tuple(1, root.queue.begin(tx), 2);
#endif
  });
  (void)result;
}
