// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: view..'s lambda must not return a pool pointer, reference or cursor
//
// A cursor in a struct as the result of view().
#include "../common.hpp"

struct Found {
  int n = 0;
#ifdef PERDURE_CONTROL
  int place;
#else
  perdure::rb_tree<int, int>::cursor place;
#endif
};

int main() {
  auto pool = perdure::Pool<Places>::open("never-run.perdure");
  const auto result = pool.view([](auto& tx, const Places& root) {
#ifdef PERDURE_CONTROL
    return Found{1, root.rb_tree.begin(tx).key(tx)};
#else
    return Found{1, root.rb_tree.begin(tx)};
#endif
  });
  (void)result;
}
