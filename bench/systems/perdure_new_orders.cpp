// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's new order over both kinds of table, on every engine that isolates; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {

PerdureStructures perdure_new_orders() {
  return perdure_structures<NewOrderList<PerdureModel>, isolating_engines>();
}

}  // namespace bench
