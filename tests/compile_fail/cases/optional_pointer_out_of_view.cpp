// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: view..'s lambda must not return a pool pointer, reference or cursor
//
// A pool pointer in an optional as the result of view().
#include "../common.hpp"

#include <optional>

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto result = pool.view([](auto& tx, const Places& root) {
#ifdef PERDURE_CONTROL
    return std::optional<std::uint64_t>(tx.read(tx(root.head)->value));
#else
    return std::optional<Node*>(tx(root.head));
#endif
  });
  (void)result;
}
