// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C without recovery, in both layouts.
#include "bench/tpcc/nvm.hpp"

#include "bench/tpcc/run.hpp"
#include "bench/workloads/tpcc_tree.hpp"

namespace bench::tpcc {
namespace {

template <unsigned parts>
Report run_parts(const Setup& setup) {
  using Workload = Tpcc<NvmModel, Tree, parts>;
  NvmHost<typename Workload::Data> host(setup.directory + "/home", setup.delays);
  return run<Workload>(host, setup, parts == 1 ? Granularity::tables : Granularity::rows);
}

}  // namespace

Report run_nvm(const Setup& setup) {
  return setup.layout == "naive" ? run_parts<1>(setup) : run_parts<districts>(setup);
}

}  // namespace bench::tpcc
