// SPDX-License-Identifier: BSD-3-Clause
// A stranger's plain code: a block is a transaction, and what can't be one is refused.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <plain/plain.hpp>

struct Counter {
  static constexpr const char* layout_id = "consumer::Counter/1";
  unsigned long value;
};

int main() {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("perdure-plain." + std::to_string(::getpid()));
  perdure::PlainPool<Counter> pool(path);
  pool.atomically([](Counter& c) { c.value = 7; });
  try {
    pool.atomically([](Counter& c) {
      c.value = 8;
      throw 9;
    });
  } catch (int) {
    std::printf("refused: %lu\n", pool.root().value);
  }
  pool.close();
  std::filesystem::remove(path);
  return 0;
}
