// SPDX-License-Identifier: BSD-3-Clause
//
// find_blocks: every heap block that an object leads to, and every problem of its containers, from
// its layout alone: what api/walk.hpp does for a program that knows its types. It can also tell
// what of the pool's data lies where.
//
// Thread safety: that of the transaction behind the walker.
#pragma once

#include <cstdint>
#include <functional>
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

/// A part of the data that a walk has come to.
struct Part {
  std::uint64_t offset = 0;  ///< in the data region
  std::uint64_t bytes = 0;   ///< 0: a block, as long as the heap says
  const std::string& field;
  /// The key of the entry of the outermost map or table that it belongs to, and where the key lies;
  /// null: it belongs to no entry, or that is not known.
  const Layout* key = nullptr;
  Address key_at = 0;
};
using OnPart = std::function<void(const Part&)>;

/// Walks the object of this layout at `at`. Damage ends the walk over its container, and is one of
/// the problems. `on_part`, if there is one, is called for each block, and for each key and value
/// within a block. Throws std::bad_alloc and what the transaction throws, except error(corrupt).
[[nodiscard]] Blocks find_blocks(Walker& walker, const Layout& object, Address at,
                                 const OnPart& on_part = {});

}  // namespace perdure::inspect
