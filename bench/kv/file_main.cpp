// SPDX-License-Identifier: BSD-3-Clause
//
// The executable of `./dev bench file`: Perdure as a key-value store, and the rate that the device allows its log.
#include "bench/kv/store.hpp"

int main(int argc, char** argv) {
  bench::Systems systems;
  bench::add_raw(systems);
  bench::add_perdure_kv(systems);
  return bench::serve(argc, argv, systems);
}
