// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's micro-benchmarks on Perdure; see perdure_dude.hpp.
#include "bench/workloads/dude_inserts.hpp"
#include "bench/systems/perdure_dude.hpp"

namespace bench {

std::unique_ptr<Session> open_dude_inserts(const Setting& setting, const PerdureChoice& choice) {
  if (setting.structure == HashInserts<PerdureModel>::structure) return open_perdure<HashInserts, dude_engines>(setting, choice);
  return open_perdure<TreeInserts, dude_engines>(setting, choice);
}

}  // namespace bench
