// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C in the optimised layout on Perdure's pools.
#include "bench/tpcc/pool_run.hpp"

namespace bench::tpcc {

Report run_optimised(const Setup& setup, bool kill) { return run_pool<districts>(setup, kill); }

}  // namespace bench::tpcc
