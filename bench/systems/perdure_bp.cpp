// SPDX-License-Identifier: BSD-3-Clause
//
// The B+-tree with nodes of 4 KiB, on the systems of Blurred Persistence's figures; see
// perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_bp() {
  return perdure_structures<BpList<PerdureModel>, blurred_engines>();
}

}  // namespace bench
