// SPDX-License-Identifier: BSD-3-Clause
//
// The inputs that the repository contains: tests/fuzz/corpus/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace perdure::fuzz {

struct Input {
  std::string name;
  std::vector<std::uint8_t> bytes;
};

/// The inputs of a target, by name.
inline std::vector<Input> corpus(const std::string& target) {
  std::vector<Input> inputs;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(PERDURE_CORPUS) / target)) {
    std::ifstream in(entry.path(), std::ios::binary);
    inputs.push_back({entry.path().filename().string(),
                      {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}});
  }
  std::sort(inputs.begin(), inputs.end(),
            [](const Input& a, const Input& b) { return a.name < b.name; });
  EXPECT_FALSE(inputs.empty()) << "no corpus for " << target;
  return inputs;
}

}  // namespace perdure::fuzz
