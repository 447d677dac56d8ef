// SPDX-License-Identifier: BSD-3-Clause
//
// The chained hash table on every engine of the registry; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_hash() {
  return perdure_structures<HashList<PerdureModel>, perdure::all_engines>();
}

}  // namespace bench
