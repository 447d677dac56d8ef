// SPDX-License-Identifier: BSD-3-Clause
//
// The executable of `./dev bench micro`: plain memory, memory that is persistent and no more, the hardware's ceiling, and every Perdure engine.
#include "bench/systems/systems.hpp"

int main(int argc, char** argv) {
  bench::Systems systems;
  bench::add_plain(systems);
  bench::add_nvm(systems);
  bench::add_ceiling(systems);
  bench::add_perdure(systems);
  return bench::serve(argc, argv, systems);
}
