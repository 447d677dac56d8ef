// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: engines that are compiled in need #include <perdure/api/compiled_pool.hpp>
//
// A list of engines without the header that compiles them in.
#include "../common.hpp"
#include "perdure/engine/undo/instances.hpp"

#ifdef PERDURE_CONTROL
using Engines = perdure::default_engines;
#else
using Engines = perdure::engines<perdure::undo>;
#endif

int main() { (void)perdure::Pool<Root, Engines>::open("never-run.perdure"); }
