// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a view has nothing to roll back
//
// A rollback asked for inside view().
#include "../common.hpp"

int main() {
  auto pool = open_pool();
#ifdef PERDURE_CONTROL
  pool.update([](auto& tx, Root&) { perdure::abort(tx); });
#else
  pool.view([](auto& tx, const Root&) { perdure::abort(tx); });
#endif
}
