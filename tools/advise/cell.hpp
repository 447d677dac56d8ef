// SPDX-License-Identifier: BSD-3-Clause
//
// One cell of `perdure advise`: a program replayed on one engine in one mode, on a new scratch pool
// that is removed afterwards, whatever happens.
//
// What is measured: after a pass that is not, passes for the cell's time, at least one (up to four
// times the time). Blocks that a pass leaves are freed, and those that it will free are allocated,
// while clock and counters stand still. In mode async the clock stops when the last transaction is
// durable.
// Thread safety: one caller at a time; interrupt() from a signal handler.
#pragma once

#include <cstdint>
#include <string>

#include "perdure/api/options.hpp"
#include "tools/advise/program.hpp"

namespace perdure::tool {

struct CellOptions {
  std::string engine, medium = "auto", directory = ".";
  Durability mode = Durability::durable;
  double seconds = 0.3;
  std::uint64_t log_size = 0, max_size = 0;  ///< 0: the library's
};

/// Of one round. Counters are those of the pool, for each transaction that changed something.
struct CellFigures {
  double per_second = 0, seconds = 0;
  std::uint64_t transactions = 0;
  double p50_us = 0, p99_us = 0;  ///< of an update, until update() returns
  std::uint64_t samples = 0;
  double fences = 0, lines = 0, log_bytes = 0, syncs = 0, aborts = 0;
  bool whole = false;  ///< each thread did all of its transactions at least once
  std::string medium;  ///< described
};

/// Throws perdure::error where the engine can't do it, Interrupted.
[[nodiscard]] CellFigures run_cell(const ReplayProgram& program, const CellOptions& options);

/// What scratch pools of a program will take of the medium, at most, and how large their logs and
/// homes must be.
struct ScratchSizes {
  std::uint64_t log_size = 0, max_size = 0, disk_bytes = 0;
};
[[nodiscard]] ScratchSizes scratch_sizes(const ReplayProgram& program);

/// While it lives, SIGINT, SIGTERM and SIGHUP make run_cell throw Interrupted.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
};
struct Interrupted {
  int signal;
};

}  // namespace perdure::tool
