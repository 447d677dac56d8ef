// SPDX-License-Identifier: BSD-3-Clause
//
// A core dump of a program does not contain the shadow, which may be as large as the pool: its
// mappings are marked (the flag `dd` of /proc/self/smaps).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "perdure/perdure.hpp"

namespace {

struct Root {
  perdure::p<std::uint64_t> count;
};

/// The flags of the mapping that contains `address`, as "rd wr ..."; empty if there is none.
std::string flags_of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) here = from <= at && at < to;
    if (here && line.starts_with("VmFlags:")) return line.substr(9) + " ";
  }
  return {};
}

TEST(CoreDump, HasNoShadow) {
  const std::string path = testing::TempDir() + "core-dump-" + std::to_string(::getpid()) + ".pool";
  for (const char* engine : {"shadow", "dudetm"}) {
    for (const char* medium : {"emulated", "file"}) {
      std::filesystem::remove(path);
      perdure::Options options;
      options.engine = engine;
      options.medium = medium;
      options.creation.max_size = 64 << 20;
      options.creation.log_size = 1 << 20;
      auto pool = perdure::Pool<Root, perdure::engines<perdure::any_engine>>::open(path, options);
      pool.update([&](auto& tx, Root& root) {
        tx(root.count) = 1;
        const std::string flags = flags_of(&root);
        EXPECT_NE(flags.find("dd "), std::string::npos)
            << engine << " on " << medium << ": " << flags;
      });
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
