// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_engines: every Perdure engine, plain memory, persistent memory without recovery,
// the hardware's ceiling and bound, and the device's rate.
#include "bench/systems/systems.hpp"

int main(int argc, char** argv) {
  bench::Systems systems;
  bench::add_plain(systems);
  bench::add_nvm(systems);
  bench::add_ceiling(systems);
  bench::add_bound(systems);
  bench::add_raw(systems);
  bench::add_perdure(systems);
  return bench::serve(argc, argv, systems);
}
