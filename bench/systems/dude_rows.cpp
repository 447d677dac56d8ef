// SPDX-License-Identifier: BSD-3-Clause
//
// TATP's Update Location and YCSB's session store on Perdure; see perdure_dude.hpp.
#include "bench/systems/perdure_dude.hpp"
#include "bench/workloads/dude_session.hpp"
#include "bench/workloads/dude_tables.hpp"

namespace bench {
namespace {

template <class Model>
using HashLocations = UpdateLocation<Model, OpenTable, true>;
template <class Model>
using TreeLocations = UpdateLocation<Model, tpcc::Tree, false>;
template <class Model>
using Sessions = SessionStore<Model, false>;
template <class Model>
using Store = SessionStore<Model, true>;

}  // namespace

std::unique_ptr<Session> open_dude_rows(const Setting& setting, const PerdureChoice& choice) {
  if (setting.structure == HashLocations<PerdureModel>::structure) return open_perdure<HashLocations, dude_engines>(setting, choice);
  if (setting.structure == TreeLocations<PerdureModel>::structure) return open_perdure<TreeLocations, dude_engines>(setting, choice);
  if (setting.structure == Sessions<PerdureModel>::structure) return open_perdure<Sessions, dude_engines>(setting, choice);
  return open_perdure<Store, dude_engines>(setting, choice);
}

}  // namespace bench
