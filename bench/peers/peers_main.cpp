// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_peers: the stores that Perdure is compared with, those whose libraries CMake found.
#include "bench/peers/peer.hpp"

int main(int argc, char** argv) {
  bench::Systems systems;
#define PEER(name) bench::add_##name(systems);
#include "peers.inc"
#undef PEER
  return bench::serve(argc, argv, systems);
}
