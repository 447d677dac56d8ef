// SPDX-License-Identifier: BSD-3-Clause
//
// The B+-tree on every engine of the registry; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_bt() {
  return perdure_structures<BtList<PerdureModel>, perdure::all_engines>();
}

}  // namespace bench
