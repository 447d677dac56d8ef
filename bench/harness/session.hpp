// SPDX-License-Identifier: BSD-3-Clause
//
// The harness's view of a system under test: a list of systems, each of which opens Sessions. A
// Session contains one filled structure (an array, a table, a store) in one system and runs cells
// over it: one workload, a number of threads, a number of seconds. It lives through all rounds of a
// benchmark; run.py keeps one process per system and lets the processes run in turn.
// Thread safety: one caller; run() starts and joins its own threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// The parameters with which a session is opened.
struct Setting {
  std::string structure;  ///< "sps", "hash", "rb", "kv", ...
  /// The directory for its files; the caller makes and removes it.
  std::string directory;
  /// Bytes of a log; of each thread's log if every thread has its own (0: the system's default).
  std::uint64_t log_size = 0;
  /// Perdure's emulated medium: the delays of a paper (medium::Delays::named).
  std::string delays = "none";
  std::string medium = "emulated";  ///< Perdure's medium
  /// The number of Perdure's logs, if its engine has one per thread (0: its default).
  unsigned rings = 0;
  /// REWIND's batch logs: the number of records that share a fence (0: the engine's default).
  unsigned log_group = 0;
  unsigned max_threads = 2;   ///< the maximum number of threads of a cell
  unsigned value_bytes = 8;   ///< of the structures whose values may have several words
  std::uint64_t records = 0;  ///< of the structures whose size can be chosen (0: their default)
  /// DudeTM: the number of transactions combined into one record (perdure::Options); the next four
  /// are DudeTM's, too.
  unsigned persist_group = 0;
  bool compress = false;
  /// Is given each combined record's payload (DudetmOptions::combined).
  std::function<void(const std::uint64_t* payload, std::uint64_t words)> combined = nullptr;
  std::uint64_t volatile_log = 0, shadow_size = 0;
  std::string shadow_paging = "automatic";
  bool standing = false;  ///< DudeTM's Persist and Reproduce have a thread each
  /// The words that transactions store are counted (systems/perdure_writes.cpp).
  bool count_writes = false;
};

/// One measurement.
struct Cell {
  std::string workload;  ///< "sps-8", "hash-100", ...: a structure of the session and its parameter
  unsigned threads = 1;
  double seconds = 0.3;
  double warmup = 0.05;
  std::uint64_t seed = 1;
  /// Operations of one transaction, if the workload has single ones.
  unsigned per_transaction = 1;
  unsigned idle_percent = 0;  ///< percentage of its time that a thread sleeps
  /// Whether the time until each operation is durable is measured, too (harness/latency.hpp).
  bool latency = false;
};

struct Outcome {
  std::uint64_t operations = 0;  ///< in the measured time
  std::uint64_t writes = 0;      ///< those of the operations that changed something
  /// The longest thread's time, including the final wait for durability.
  double seconds = 0;
  double rate = 0;  ///< operations per second, summed over the threads
  /// The processor time of the threads, summed: less than their elapsed time if they waited or were
  /// preempted.
  double cpu_seconds = 0;
  /// The system's counters over the cell (including the warm-up): commits, fences, log_bytes, ...
  std::map<std::string, double> counters;
};

class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  virtual Outcome run(const Cell& cell) = 0;
  /// Checks the whole structure; returns the problems, none if it is right.
  virtual std::vector<std::string> audit() = 0;
  /// Closes the store and opens it again, if the system is persistent: then audit() sees what is
  /// durable. Returns false if there is nothing to reopen.
  virtual bool reopen() { return false; }
  /// What should be recorded beside the figures: the medium, the log's size, a version.
  virtual std::string describe() = 0;
};

struct System {
  std::string name;   ///< "plain", "pmemobj", "shadow/stm:group", ...
  std::string about;  ///< one line
  std::vector<std::string> structures;
  unsigned max_threads;  ///< 1 if the system can't isolate
  std::function<std::unique_ptr<Session>(const Setting&)> open;
};

using Systems = std::vector<System>;

/// A structure that is a program of its own on a system (bench/apps), and how it is opened there.
struct Program {
  std::string structure;
  std::function<std::unique_ptr<Session>(const Setting&)> open;
};
using Programs = std::vector<Program>;
/// Opens the one of these whose structure the setting names; null if none is.
inline std::unique_ptr<Session> open_program(const Programs& programs, const Setting& setting) {
  for (const Program& program : programs)
    if (program.structure == setting.structure) return program.open(setting);
  return nullptr;
}

/// The number in a workload's name: 8 of "sps-8"; the code of a letter, as in "ycsb-a". Throws
/// std::invalid_argument for other names.
unsigned parameter_of(const std::string& workload, const std::string& structure);
/// Throws std::invalid_argument unless a structure's parameter is a percentage.
inline void check_percent(const std::string& structure, unsigned parameter) {
  if (parameter > 100)
    throw std::invalid_argument(structure + ": found " + std::to_string(parameter) +
                                ", expected a percentage: 0 to 100");
}

/// main() of a benchmark executable: --list, one cell, or --serve (see serve.cpp).
int serve(int argc, char** argv, const Systems& systems);

}  // namespace bench
