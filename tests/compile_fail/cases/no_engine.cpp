// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: the list of engines is empty
//
// A pool that no engine may open.
#include "../common.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/undo/instances.hpp"

#ifdef PERDURE_CONTROL
using Engines = perdure::engines<perdure::undo>;
#else
using Engines = perdure::engines<>;
#endif

int main() { (void)perdure::Pool<Root, Engines>::open("never-run.perdure"); }
