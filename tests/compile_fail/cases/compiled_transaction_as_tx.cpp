// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: whose engines are compiled in: it takes .auto& tx.
//
// A pool whose engines are compiled in has transactions of other types.
#include "../common.hpp"
#include "perdure/api/compiled_pool.hpp"

#ifdef PERDURE_CONTROL
using Engines = perdure::default_engines;
#else
using Engines = perdure::engines<perdure::shadow>;
#endif

int main() {
  auto pool = perdure::Pool<Root, Engines>::open("never-run.perdure");
  pool.update([](perdure::tx& tx, Root& root) { tx(root.count) = 1; });
}
