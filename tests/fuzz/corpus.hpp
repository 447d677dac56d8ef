// SPDX-License-Identifier: BSD-3-Clause
//
// The inputs that the repository contains: tests/fuzz/corpus/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
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

/// A random input: `header` bytes, then 1 to `most` changes of `change` bytes, each of which ends
/// with a value of 8.
inline std::vector<std::uint8_t> random_input(std::mt19937_64& random, std::size_t header,
                                              std::size_t change, unsigned most) {
  std::vector<std::uint8_t> input(header + change * (1 + random() % most));
  for (auto& b : input) b = static_cast<std::uint8_t>(random());
  // Small numbers are the dangerous ones: sizes, counts, offsets, heights.
  for (std::size_t i = header + change - 8; i + 8 <= input.size(); i += change) {
    const std::uint64_t value = random() % 3 == 0   ? random()
                                : random() % 3 == 0 ? random() % 4096
                                                    : std::uint64_t{1} << random() % 64;
    std::memcpy(&input[i], &value, 8);
  }
  return input;
}

}  // namespace perdure::fuzz
