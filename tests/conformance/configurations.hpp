// SPDX-License-Identifier: BSD-3-Clause
//
// The configurations in which a pool can be made and used, as far as they change the order of
// commits and the rule of recovery: the conformance tests run all of them.
#pragma once

#include "perdure/api/options.hpp"
#include "tests/engine/families.hpp"

namespace perdure::conformance {

struct Configuration {
  const char* name;
  Durability durability;
  /// Appends of 4 KiB, fences that are syncs.
  bool like_a_file;
  /// Whether an update returns when it is durable.
  [[nodiscard]] constexpr bool waits() const noexcept { return durability != async; }
};
inline constexpr Configuration configurations[] = {{"durable", durable, false},
                                                   {"group", group, false},
                                                   {"async", async, false},
                                                   {"file", durable, true},
                                                   {"file-async", async, true}};

/// The bytes of a ring that wraps every few steps of a workload. undo logs one line at a time, on a
/// file one block; REWIND one record per word, in buckets, and with two layers two nodes per
/// transaction.
inline std::uint64_t small_ring(const engine::EngineInfo& e, bool like_a_file) {
  if (test::is_undo(e)) return like_a_file ? 1 << 20 : 16384;
  if (test::is_blurred(e)) return 16384;
  if (test::is_softwrap(e)) return test::aliases_for_all(e) ? 24576 : 16384;
  if (e.family.starts_with("rewind-1l")) return 32768;
  if (e.family.starts_with("rewind-2l")) return 65536;
  return like_a_file ? 32768 : 8192;
}

}  // namespace perdure::conformance
