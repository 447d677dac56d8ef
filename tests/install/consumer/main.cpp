// SPDX-License-Identifier: BSD-3-Clause
//
// A stranger's C++ program: counts its runs in a pool.
#include <perdure.hpp>

#include <cstdint>
#include <cstdio>

struct Visits {
  perdure::p<std::uint64_t> count;
};

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto pool = perdure::Pool<Visits>::open(argv[1]);
  pool.update([](auto& tx, Visits& root) { tx(root.count) += 1; });
  const std::uint64_t count =
      pool.view([](auto& tx, const Visits& root) { return tx(root.count); });
  std::printf("visits: %llu\n", static_cast<unsigned long long>(count));
  pool.close();
}
