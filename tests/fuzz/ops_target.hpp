// SPDX-License-Identifier: BSD-3-Clause
//
// The fuzzer of operations: one program on every engine of the registry (ops_player.hpp); all must end alike.
// Thread safety: one thread.
#pragma once

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

/// The program on every one of the instances; what was found, empty when nothing.
template <class... Instances, class Tamper = NoTampering>
std::string play(engines<Instances...>, const std::uint8_t* data, std::size_t size, Tamper tamper = {}) {
  const Program program = decode(data, size);
  std::vector<std::pair<std::string_view, Run>> runs;
  const auto one = [&]<class Instance>(Instance) {
    runs.emplace_back(Instance::name, Player<Instance>::play(program, tamper));
    return runs.back().second.problem.empty();
  };
  if (!(one(Instances()) && ...)) return runs.back().second.problem;
  for (const auto& [name, run] : runs)
    for (const auto& [other_name, other] : runs)
      if (run.outcomes == other.outcomes && run.end != other.end)
        return std::string(name) + " and " + std::string(other_name) + " end with different contents";
  return {};
}

}  // namespace perdure::fuzz
