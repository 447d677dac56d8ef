// SPDX-License-Identifier: BSD-3-Clause
//
// The B+-tree of REWIND's figures 7 to 10 in one system, for what a benchmark's cell does not
// offer: transactions of several operations, rollback, and recovery of what a killed process left.
// An update inserts its record if the key is absent and removes it if it is present.
// Thread safety: many threads may call transact() if the system was opened with `threads` of more
// than one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "bench/harness/session.hpp"

namespace bench {

struct TreeOp {
  std::uint64_t key;
  bool update;  ///< otherwise a look-up, which reads the record
};

struct TreeSetting {
  std::string system;  ///< an instance of Perdure's registry, or "berkeleydb"
  unsigned threads = 1;
  Setting store;  ///< directory, medium, delays, log
};

class Tree {
 public:
  static constexpr std::uint64_t keys = 200'000, filled = keys / 2;

  Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  virtual ~Tree() = default;

  /// Runs one transaction, which is durable when this returns. Look-ups alone need no transaction
  /// if the system can read without one.
  virtual void transact(std::span<const TreeOp> ops) = 0;
  /// Makes the updates in one transaction, then rolls it back; returns the seconds of the rollback.
  virtual double roll_back(std::span<const TreeOp> ops) = 0;
  /// Closes and opens: the log is empty afterwards.
  virtual void reopen() = 0;
  /// Checks the whole tree and returns its number of records. Throws std::runtime_error when
  /// something is wrong.
  virtual std::uint64_t audit() = 0;
  /// The number of transactions that opening found in the log; 0 if the system does not report it.
  virtual std::uint64_t recovered() { return 0; }
  virtual std::string describe() = 0;
};

std::unique_ptr<Tree> open_perdure_tree(const TreeSetting& setting);
#ifdef PERDURE_BENCH_BERKELEYDB
std::unique_ptr<Tree> open_berkeleydb_tree(const TreeSetting& setting);
#endif

}  // namespace bench
