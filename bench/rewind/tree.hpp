// SPDX-License-Identifier: BSD-3-Clause
//
// The B+-tree of REWIND's figures 7 to 10 in one system, for what a benchmark's cell can't ask:
// transactions of several operations, rollback, and recovery of what a killed process left. An
// update inserts its record where the key is absent and removes it where it is present.
// Thread safety: transact() by many threads, where the system was opened with `threads` of more
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
  bool update;  ///< else a look-up, which reads the record
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

  /// One transaction, durable when this returns; look-ups alone are none, where the system can read
  /// without.
  virtual void transact(std::span<const TreeOp> ops) = 0;
  /// Makes the updates, in one transaction, then rolls it back: how many seconds that took.
  virtual double roll_back(std::span<const TreeOp> ops) = 0;
  /// Closes and opens: nothing is then left in the log.
  virtual void reopen() = 0;
  /// How many records there are, the whole tree looked at. Throws std::runtime_error when something
  /// is wrong.
  virtual std::uint64_t audit() = 0;
  /// How many transactions were found in the log when it was opened; 0 where the system does not
  /// tell.
  virtual std::uint64_t recovered() { return 0; }
  virtual std::string describe() = 0;
};

std::unique_ptr<Tree> open_perdure_tree(const TreeSetting& setting);
#ifdef PERDURE_BENCH_BERKELEYDB
std::unique_ptr<Tree> open_berkeleydb_tree(const TreeSetting& setting);
#endif

}  // namespace bench
