// SPDX-License-Identifier: BSD-3-Clause
//
// The fuzzer of operations: one program on every engine of the registry (ops_player.hpp); all must
// end alike.
// Thread safety: one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/ops_player.hpp"

namespace perdure::fuzz {

struct NoTampering {
  template <class ThisPool>
  void operator()(ThisPool&, const Command&) const {}
};

/// Runs the program on every instance; returns what was found, or an empty text.
template <class Tamper = NoTampering>
std::string play(const std::uint8_t* data, std::size_t size, Tamper tamper = {},
                 std::span<const engine::EngineInfo> on = test::chosen_engines()) {
  const Program program = decode(data, size);
  std::vector<std::pair<std::string_view, Run>> runs;
  for (const engine::EngineInfo& entry : on) {
    // Of REWIND's compositions the default one: a program takes seconds with two layers.
    if (test::is_rewind(entry) && entry.name != "rewind-1l-nfp-batch") continue;
    if (!test::runs_here(entry)) continue;
    runs.emplace_back(entry.name, Player::play(entry, program, tamper));
    if (!runs.back().second.problem.empty()) return runs.back().second.problem;
  }
  for (const auto& [name, run] : runs)
    for (const auto& [other_name, other] : runs)
      if (run.outcomes == other.outcomes && run.end != other.end)
        return std::string(name) + " and " + std::string(other_name) +
               " end with different contents";
  return {};
}

}  // namespace perdure::fuzz
