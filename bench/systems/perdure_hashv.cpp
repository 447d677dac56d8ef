// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table with values of many words, on the systems of Blurred Persistence's figures; see perdure.hpp.
#include "bench/systems/perdure.hpp"
#include "bench/workloads/hash_values.hpp"

namespace bench {
namespace {

template <class Model>
using HashValueSet = KeySet<HashValues<Model>>;

}  // namespace

std::unique_ptr<Session> open_perdure_hashv(const Setting& setting, const PerdureChoice& choice) {
  return open_perdure<HashValueSet, blurred_engines>(setting, choice);
}

}  // namespace bench
