// SPDX-License-Identifier: BSD-3-Clause
//
// libpmemobj in the list of systems; see pmemobj.hpp.
#include "bench/systems/pmemobj.hpp"

#include "bench/systems/systems.hpp"

namespace bench {
namespace {

// Not TreeInserts, whose nodes refer to each other by plain pointers (softwrap/stx_tree.hpp).
using PmemWorkloads =
    JoinedLists<SwapList<PmemModel>, HashList<PmemModel>, RbList<PmemModel>, BtList<PmemModel>,
                HashInsertList<PmemModel>, NewOrderList<PmemModel>, LocationList<PmemModel>,
                StoreList<PmemModel>, YcsbList<PmemModel>>;

}  // namespace

void add_pmemobj(Systems& systems) {
  systems.push_back({"pmemobj", "libpmemobj, transactions as its users write them",
                     PmemWorkloads::names(), 64,
                     [](const Setting& s) { return open_listed<PmemHost>(PmemWorkloads{}, s); }});
}

}  // namespace bench
