// SPDX-License-Identifier: BSD-3-Clause
//
// Swaps of words, on every engine of the registry; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_sps() {
  return perdure_structures<SwapList<PerdureModel>, perdure::all_engines>();
}

}  // namespace bench
