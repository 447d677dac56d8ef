// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's micro-benchmarks on every engine that isolates; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_inserts() {
  return perdure_structures<JoinedLists<HashInsertList<PerdureModel>, TreeInsertList<PerdureModel>>,
                            isolating_engines>();
}

}  // namespace bench
