// SPDX-License-Identifier: BSD-3-Clause
//
// The cells of `perdure advise`, engine x mode, and the rounds over all of them. The rounds are
// interleaved, so that other load on the machine affects every cell alike. The figures are medians
// of the rounds, and of the ratios to the default engine within each round. A trace that takes
// longer than a cell's time is cut into stretches, one per round, the same for all cells.
// Thread safety: single-threaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perdure/engine/engine_info.hpp"
#include "tools/advise/cell.hpp"

namespace perdure::tool {

inline constexpr std::string_view default_engine = "shadow";

struct Cell {
  engine::EngineInfo engine;
  Durability mode = Durability::durable;
  std::vector<std::optional<CellFigures>> rounds;
  std::string error;  ///< why the engine can't run it
  // Medians of the rounds.
  CellFigures figures;
  std::optional<double> ratio;  ///< of shadow:durable's rate, within each round
  /// What cells are ranked by: the ratio if there is one, otherwise the rate.
  [[nodiscard]] double score() const { return !ran() ? -1 : ratio ? *ratio : figures.per_second; }
  [[nodiscard]] bool durable() const { return engine.family != "volatile"; }
  [[nodiscard]] bool ran() const { return error.empty() && figures.seconds > 0; }
};

struct MatrixOptions {
  /// If empty: the engines that isolate, that this machine can run and that are no ablation of
  /// another one; and `volatile`.
  std::vector<std::string> engines;
  std::vector<Durability> modes{Durability::durable, Durability::async};
  std::string medium = "auto", directory = ".";
  double seconds = 0.3;
  unsigned rounds = 3;
  std::uint64_t skip = 0;  ///< transactions at the trace's beginning to leave out
};

struct Stretch {
  std::uint64_t first = 0, transactions = 0, threads = 0, arena_bytes = 0, shared_blocks = 0;
  bool folded = false;
};

struct Matrix {
  std::vector<Cell> cells;
  std::vector<Stretch> stretches;  ///< of each round
  /// Engines whose update() always returns durable: async is the same as durable for them.
  std::vector<std::string> no_async;
  ScratchSizes sizes;
  std::string medium;  ///< "emulated"
  std::string medium_described;
};

[[nodiscard]] const char* mode_name(Durability mode);

/// Throws perdure::error for options that make no sense and for a disk without enough space, and
/// Interrupted.
[[nodiscard]] Matrix measure(const engine::WorkloadTrace& trace, const MatrixOptions& options);

}  // namespace perdure::tool
