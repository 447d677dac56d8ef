// SPDX-License-Identifier: BSD-3-Clause
// A stranger's plain code: a block is a transaction, and what can't be one is refused.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <plain/plain.hpp>
#include <stdexcept>
#include <string>

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
      throw std::runtime_error("a text that is too long for the object itself");
    });
  } catch (const std::runtime_error& e) {
    std::printf("refused: %lu, %s\n", pool.root().value, e.what());
  }
  pool.close();
  std::filesystem::remove(path);
  return 0;
}
