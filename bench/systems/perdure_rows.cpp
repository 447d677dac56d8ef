// SPDX-License-Identifier: BSD-3-Clause
//
// TATP's Update Location and the session store, on every engine that isolates; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_rows() {
  return perdure_structures<JoinedLists<LocationList<PerdureModel>, StoreList<PerdureModel>>,
                            isolating_engines>();
}

}  // namespace bench
