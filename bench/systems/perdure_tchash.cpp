// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table of Tokyo Cabinet's design, on the systems of Blurred Persistence's figures; see
// perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_tchash() {
  return perdure_structures<TcHashList<PerdureModel>, blurred_engines>();
}

}  // namespace bench
