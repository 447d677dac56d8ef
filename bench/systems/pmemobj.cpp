// SPDX-License-Identifier: BSD-3-Clause
//
// libpmemobj in the list of systems; see pmemobj.hpp.
#include "bench/systems/pmemobj.hpp"

#include "bench/systems/systems.hpp"
#include "bench/workloads/dude_inserts.hpp"
#include "bench/workloads/dude_tables.hpp"

namespace bench {
namespace {

struct PmemSystem {
  using Model = PmemModel;
  template <class Root>
  using Host = PmemHost<Root>;
};

template <template <class> class Workload>
std::unique_ptr<Session> with(const Setting& setting) {
  using Chosen = Workload<PmemModel>;
  return std::make_unique<StructureSession<PmemHost<typename Chosen::Root>, Chosen>>(setting, std::size_t{4} << 30);
}
template <class Model>
using HashNewOrders = NewOrders<Model, OpenTable, true>;
template <class Model>
using HashLocations = UpdateLocation<Model, OpenTable, true>;

// DudeTM's, in their hash forms (papers: DudeTM, ASPLOS '17, section 5.2.2, which ran NVML on these alone), besides the micro-benchmarks.
std::unique_ptr<Session> open(const Setting& setting) {
  if (setting.structure == HashInserts<PmemModel>::structure) return with<HashInserts>(setting);
  if (setting.structure == HashNewOrders<PmemModel>::structure) return with<HashNewOrders>(setting);
  if (setting.structure == HashLocations<PmemModel>::structure) return with<HashLocations>(setting);
  return open_micro<PmemSystem>(setting);
}

}  // namespace

void add_pmemobj(Systems& systems) {
  auto structures = micro_structures();
  structures.insert(structures.end(), {"ht", "tpcch", "tatph"});
  systems.push_back({"pmemobj", "libpmemobj, transactions as its users write them", std::move(structures), 64, open});
}

}  // namespace bench
