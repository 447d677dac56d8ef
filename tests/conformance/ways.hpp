// SPDX-License-Identifier: BSD-3-Clause
//
// The ways a pool may be made and used, as far as they change the order of commits and recovery's rule: the conformance tests go through all of them.
#pragma once

#include "perdure/api/options.hpp"

namespace perdure::conformance {

struct Way {
  const char* name;
  Durability durability;
  bool like_a_file;                                                                    ///< appends of 4 KiB, fences that are syncs
  [[nodiscard]] constexpr bool waits() const noexcept { return durability != async; }  ///< an update returns when it is durable
};
inline constexpr Way ways[] = {
    {"durable", durable, false}, {"group", group, false}, {"async", async, false}, {"file", durable, true}, {"file-async", async, true}};

}  // namespace perdure::conformance
