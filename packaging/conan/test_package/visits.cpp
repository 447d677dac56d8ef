// SPDX-License-Identifier: BSD-3-Clause
//
// Counts its runs in a pool: visits POOL EXPECTED ends with 0 if this is run number EXPECTED.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <perdure.hpp>

struct Visits {
  perdure::p<std::uint64_t> count;
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto pool = perdure::Pool<Visits>::open(argv[1]);
  pool.update([](auto& tx, Visits& root) { tx(root.count) += 1; });
  const std::uint64_t count =
      pool.view([](auto& tx, const Visits& root) { return tx(root.count); });
  const std::uint64_t expected = std::strtoull(argv[2], nullptr, 10);
  std::printf("visits: %llu, expected %llu\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(expected));
  return count == expected ? 0 : 1;
}
