// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table with values of many words, on the systems of Blurred Persistence's figures; see
// perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_hashv() {
  return perdure_structures<HashValueList<PerdureModel>, blurred_engines>();
}

}  // namespace bench
