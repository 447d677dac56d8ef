// SPDX-License-Identifier: BSD-3-Clause
//
// One cell of `perdure advise`: a program replayed on one engine in one mode, on a new scratch pool
// that is removed afterwards, whatever happens.
//
// What is measured: after one pass that is not measured, passes for the cell's time, at least one
// (up to four times the cell's time). Blocks that a pass leaves allocated are freed, and blocks
// that it will free are allocated, while clock and counters are stopped. In mode async the clock
// stops when the last transaction is durable.
// Thread safety: one caller at a time; interrupt() may be called from a signal handler.
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
  std::uint64_t log_size = 0, max_size = 0;  ///< 0: the library's default
};

/// Figures of one round. Counters are the pool's, per transaction that changed something.
struct CellFigures {
  double per_second = 0, seconds = 0;
  std::uint64_t transactions = 0;
  double p50_us = 0, p99_us = 0;  ///< of an update, until update() returns
  std::uint64_t samples = 0;
  double fences = 0, lines = 0, log_bytes = 0, syncs = 0, aborts = 0;
  bool whole = false;  ///< each thread did all of its transactions at least once
  std::string medium;  ///< a description
};

/// Throws perdure::error if the engine can't run the program, and Interrupted.
[[nodiscard]] CellFigures run_cell(const ReplayProgram& program, const CellOptions& options);

/// The maximum size of a program's scratch pools on the medium, and how large their logs and data
/// regions must be.
struct ScratchSizes {
  std::uint64_t log_size = 0, max_size = 0, disk_bytes = 0;
};
[[nodiscard]] ScratchSizes scratch_sizes(const ReplayProgram& program);

/// While this object lives, SIGINT, SIGTERM and SIGHUP make run_cell throw Interrupted.
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
