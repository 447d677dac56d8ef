// SPDX-License-Identifier: BSD-3-Clause
//
// One workload on every engine of the registry; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

std::unique_ptr<Session> open_perdure_bt(const Setting& setting, const PerdureChoice& choice) {
  return open_perdure<BtSet>(setting, choice);
}

}  // namespace bench
