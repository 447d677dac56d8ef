// SPDX-License-Identifier: BSD-3-Clause
//
// YCSB's core workloads on every engine that isolates; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_ycsb() {
  return perdure_structures<YcsbList<PerdureModel>, isolating_engines>();
}

}  // namespace bench
