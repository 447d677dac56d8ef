// SPDX-License-Identifier: BSD-3-Clause
//
// find_blocks: every heap block that an object leads to, and every problem of its containers, from
// its layout alone: what api/walk.hpp does for a program that knows its types.
//
// Thread safety: that of the transaction behind the walker.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "perdure/inspect/layout.hpp"
#include "perdure/inspect/walk.hpp"

namespace perdure::inspect {

/// How many records, or rows of a table, have which layout.
struct Versions {
  std::uint64_t now = 0;                           ///< that of the pool's program
  std::map<const Layout*, std::uint64_t> earlier;  ///< those of earlier versions that are left
};

/// What find_blocks found.
struct Blocks {
  std::vector<std::uint64_t> offsets;  ///< in the data region; one that is owned twice comes twice
  std::vector<std::string> problems;   ///< each with its field; at most 100
  /// Fields whose type is only named: they may lead to blocks that were not seen, so that a block
  /// that nothing else leads to need not be a leak.
  std::vector<std::string> unknown;
  /// Of the fields that have records or rows.
  std::map<std::string, Versions> versions;
  [[nodiscard]] bool whole() const noexcept { return problems.empty() && unknown.empty(); }
};

/// Walks the object of this layout at `at`. Damage ends the walk over its container, and is one of
/// the problems. Throws std::bad_alloc and what the transaction throws, except error(corrupt).
[[nodiscard]] Blocks find_blocks(Walker& walker, const Layout& object, Address at);

}  // namespace perdure::inspect
