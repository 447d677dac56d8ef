// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_peers: the stores Perdure is compared with, those whose libraries CMake found.
#include "bench/peers/peer.hpp"

int main(int argc, char** argv) {
  bench::Systems systems;
#ifdef PERDURE_BENCH_SQLITE
  bench::add_sqlite(systems);
#endif
#ifdef PERDURE_BENCH_LMDB
  bench::add_lmdb(systems);
#endif
#ifdef PERDURE_BENCH_ROCKSDB
  bench::add_rocksdb(systems);
#endif
#ifdef PERDURE_BENCH_BERKELEYDB
  bench::add_berkeleydb(systems);
#endif
#ifdef PERDURE_BENCH_TOKYOCABINET
  bench::add_tokyocabinet(systems);
#endif
  return bench::serve(argc, argv, systems);
}
