// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C in the naive layout on Perdure's pools.
#include "bench/tpcc/pool_run.hpp"

namespace bench::tpcc {

Report run_naive(const Setup& setup, bool kill) { return run_pool<1>(setup, kill); }

}  // namespace bench::tpcc
