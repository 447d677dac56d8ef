// SPDX-License-Identifier: BSD-3-Clause
//
// What the harness knows of a system under test: a list of systems, each opening Sessions. A
// Session holds one filled structure (an array, a table, a store) in one system and is asked to run
// cells over it: one workload, so many threads, so many seconds. It lives through all rounds of a
// benchmark; run.py holds one process a system and lets them run in turn.
// Thread safety: one caller; run() starts and joins its own threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// What a session is opened with.
struct Setting {
  std::string structure;  ///< "sps", "hash", "rb", "kv", ...
  /// where its files go; made by the caller, removed by the caller
  std::string directory;
  /// bytes of a log, a thread's where each has its own (0: the system's default)
  std::uint64_t log_size = 0;
  /// Perdure's emulated medium: the delays of a paper (medium::Delays::named)
  std::string delays = "none";
  std::string medium = "emulated";  ///< Perdure's
  /// Perdure's logs, where its engine has one a thread (0: its default)
  unsigned rings = 0;
  /// REWIND's batch logs: records that share a fence (0: the engine's default)
  unsigned log_group = 0;
  unsigned max_threads = 2;   ///< the most threads a cell will ask for
  unsigned value_bytes = 8;   ///< of the structures whose values may have several words
  std::uint64_t records = 0;  ///< of the structures that have any number (0: their default)
  /// DudeTM: transactions combined to a record (perdure::Options), as the next three
  unsigned persist_group = 0;
  bool compress = false;
  std::uint64_t volatile_log = 0, shadow_size = 0;
  std::string shadow_paging = "automatic";
};

/// One measurement.
struct Cell {
  std::string workload;  ///< "sps-8", "hash-100", ...: a structure of the session and its parameter
  unsigned threads = 1;
  double seconds = 0.3;
  double warmup = 0.05;
  std::uint64_t seed = 1;
  /// operations of one transaction, where the workload has single ones
  unsigned per_transaction = 1;
  unsigned idle_percent = 0;  ///< of a thread's time in which it sleeps
  /// each operation's time until it is durable is taken, too (harness/latency.hpp)
  bool latency = false;
};

struct Outcome {
  std::uint64_t operations = 0;  ///< in the measured time
  std::uint64_t writes = 0;      ///< those of them that changed something
  double seconds = 0;            ///< the longest thread's time, the final wait for durability in it
  double rate = 0;               ///< operations a second, summed over the threads
  /// the processor's time that the threads had, summed: less than their time where they waited or
  /// were put off
  double cpu_seconds = 0;
  /// what the system counted over the cell (warm-up too): commits, fences, log_bytes, ...
  std::map<std::string, double> counters;
};

class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  virtual Outcome run(const Cell& cell) = 0;
  /// Looks at the structure as a whole; what is wrong with it, empty when it is right.
  virtual std::vector<std::string> audit() = 0;
  /// Closes the store and opens it again, where the system keeps one: then audit() sees what is
  /// durable. False: nothing to reopen.
  virtual bool reopen() { return false; }
  /// What should be recorded beside the figures: the medium, the log's size, a version.
  virtual std::string describe() = 0;
};

struct System {
  std::string name;   ///< "plain", "pmemobj", "shadow/stm:group", ...
  std::string about;  ///< one line
  std::vector<std::string> structures;
  unsigned max_threads;  ///< 1 where the system can't isolate
  std::function<std::unique_ptr<Session>(const Setting&)> open;
};

using Systems = std::vector<System>;

/// The number in a workload's name: 8 of "sps-8"; the code of a letter, as in "ycsb-a". Throws
/// std::invalid_argument for other names.
unsigned parameter_of(const std::string& workload, const std::string& structure);

/// main() of a benchmark executable: --list, one cell, or --serve (see serve.cpp).
int serve(int argc, char** argv, const Systems& systems);

}  // namespace bench
