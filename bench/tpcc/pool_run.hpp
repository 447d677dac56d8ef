// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C in one layout, for the instances of Measured; naive.cpp and optimised.cpp instantiate one
// layout each (they are compiled in parallel).
// Thread safety: one caller.
#pragma once

#include <memory>
#include <stdexcept>

#include "bench/tpcc/pool.hpp"
#include "bench/workloads/tpcc_tree.hpp"

namespace bench::tpcc {

template <unsigned parts>
Report run_pool(const Setup& setup, bool kill) {
  using Workload = Tpcc<PerdureModel, Tree, parts>;
  Report report;
  const bool found = with_instance(setup.system, [&]<class Instance>(std::type_identity<Instance>) {
    using Host = PoolHost<typename Workload::Data, Instance>;
    const auto open = [&] {
      return std::make_unique<Host>(setup.directory + "/pool.perdure", setup);
    };
    constexpr bool isolates = Instance::isolation == perdure::Isolation::full;
    constexpr Granularity granularity = isolates     ? Granularity::none
                                        : parts == 1 ? Granularity::tables
                                                     : Granularity::rows;
    if (kill) {
      report = check_recovery<Workload>(open, setup, granularity);
    } else {
      const auto host = open();
      report = run<Workload>(*host, setup, granularity);
    }
  });
  if (!found)
    throw std::invalid_argument("found system '" + setup.system +
                                "', expected nvm, rewind-*, rewind-*/stm, rewind-*/none, shadow, "
                                "dudetm/stm or volatile/stm");
  return report;
}

}  // namespace bench::tpcc
