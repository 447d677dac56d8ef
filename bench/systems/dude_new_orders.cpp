// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's new order over both kinds of table on Perdure; see perdure_dude.hpp.
#include "bench/systems/perdure_dude.hpp"
#include "bench/workloads/dude_tables.hpp"

namespace bench {
namespace {

template <class Model>
using HashOrders = NewOrders<Model, OpenTable, true>;
template <class Model>
using TreeOrders = NewOrders<Model, tpcc::Tree, false>;

}  // namespace

std::unique_ptr<Session> open_dude_new_orders(const Setting& setting, const PerdureChoice& choice) {
  if (setting.structure == HashOrders<PerdureModel>::structure) return open_perdure<HashOrders, dude_engines>(setting, choice);
  return open_perdure<TreeOrders, dude_engines>(setting, choice);
}

}  // namespace bench
