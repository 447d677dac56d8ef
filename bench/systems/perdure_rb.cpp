// SPDX-License-Identifier: BSD-3-Clause
//
// The red-black tree on every engine of the registry; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_rb() {
  return perdure_structures<RbList<PerdureModel>, perdure::all_engines>();
}

}  // namespace bench
