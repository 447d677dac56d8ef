// SPDX-License-Identifier: BSD-3-Clause
//
// The B+-tree with 4 KiB nodes, on the systems of Blurred Persistence's figures; see perdure.hpp.
#include "bench/systems/perdure.hpp"

namespace bench {
namespace {

template <class Model>
using BpSet = KeySet<BplusTree<Model, BtPages>>;

}  // namespace

std::unique_ptr<Session> open_perdure_bp(const Setting& setting, const PerdureChoice& choice) {
  return open_perdure<BpSet, blurred_engines>(setting, choice);
}

}  // namespace bench
