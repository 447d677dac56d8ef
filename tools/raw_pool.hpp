// SPDX-License-Identifier: BSD-3-Clause
//
// RawPool: a pool opened to inspect its bytes: any engine, any root type, closed in order or not;
// read-only, without recovery and without a mapping. It takes the pool's shared lock, so a pool
// that a program has open for writing is `busy`, unless only its header is wanted. It writes
// nothing. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perdure/log/ring.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/lock.hpp"
#include "tools/command.hpp"

namespace perdure::tool {

/// One ring's live records.
struct RingReport {
  std::uint32_t ring = 0;
  std::uint64_t head = 0;  ///< position of the first record
  log::Scan scan;
};

class RawPool {
 public:
  /// `header_only`: nothing but the header is looked at, also while a program has the pool open for
  /// writing (in_use()). Throws perdure::error.
  explicit RawPool(const PoolArguments& arguments, bool header_only = false);
  [[nodiscard]] bool in_use() const noexcept { return in_use_; }

  /// Throws `incompatible` if the pool has features that this build must know to read more of it
  /// than the header.
  void require_readable() const { pool::check_features(path_, header(), false).or_throw(); }
  [[nodiscard]] const pool::Header& header() const noexcept { return chosen_.header; }
  /// What was found in each of the header's two copies.
  [[nodiscard]] const pool::ChosenHeader& copies() const noexcept { return chosen_; }
  [[nodiscard]] medium::Medium& medium() noexcept { return *medium_; }
  [[nodiscard]] std::string engine() const;
  [[nodiscard]] std::string layout() const;
  /// Whether its engine's rings hold records. If not, scan_rings finds none, and only recovery can
  /// read them.
  [[nodiscard]] bool has_records() const;
  /// Whether reading the pool needs no recovery, nor that no program has it open.
  [[nodiscard]] bool serves_readers() const;
  /// Scans every ring of a pool that was not closed in order; calls f(ring, record) for each whole
  /// record in ring order.
  std::vector<RingReport> scan_rings(
      const std::function<void(std::uint32_t ring, const log::RecordView&)>& f = {});

 private:
  std::string path_;
  pool::FileLock lock_;  // before medium_, so that it is released after it
  bool in_use_ = false;
  pool::ChosenHeader chosen_;
  std::unique_ptr<medium::Medium> medium_;
};

/// The header of a pool that may be in use: takes no lock and reads nothing else. Throws
/// perdure::error.
pool::Header peek_header(const std::string& path);

[[nodiscard]] std::string engine_of(const pool::Header& header);
[[nodiscard]] std::string layout_of_pool(const pool::Header& header);

}  // namespace perdure::tool
