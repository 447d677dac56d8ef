// SPDX-License-Identifier: BSD-3-Clause
//
// RawPool: a pool opened for looking at its bytes: any engine, any root type, closed in order or
// not; read-only, nothing recovered, nothing mapped as a view. Takes the pool's shared lock (a pool
// that a program has open for writing is `busy`). Writes nothing. Not thread-safe.
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
  /// Throws perdure::error.
  explicit RawPool(const PoolArguments& arguments);

  /// Throws `incompatible` where the pool has features that this build must know to read more of it
  /// than the header.
  void require_readable() const { pool::check_features(path_, header(), false).or_throw(); }
  [[nodiscard]] const pool::Header& header() const noexcept { return chosen_.header; }
  /// What each of the header's two copies turned out to be.
  [[nodiscard]] const pool::ChosenHeader& copies() const noexcept { return chosen_; }
  [[nodiscard]] medium::Medium& medium() noexcept { return *medium_; }
  [[nodiscard]] std::string engine() const;
  [[nodiscard]] std::string layout() const;
  /// Its engine's rings hold records: else scan_rings finds none, and recovery alone can read them.
  [[nodiscard]] bool has_records() const;
  /// Scans every ring of a pool that was not closed in order; calls f(ring, record) for each whole
  /// record in ring order.
  std::vector<RingReport> scan_rings(
      const std::function<void(std::uint32_t ring, const log::RecordView&)>& f = {});

 private:
  std::string path_;
  pool::FileLock lock_;  // before medium_: dropped after it
  pool::ChosenHeader chosen_;
  std::unique_ptr<medium::Medium> medium_;
};

/// The header of a pool that may be in use: no lock is taken, nothing else is read. Throws
/// perdure::error.
pool::Header peek_header(const std::string& path);

[[nodiscard]] std::string engine_of(const pool::Header& header);
[[nodiscard]] std::string layout_of_pool(const pool::Header& header);

}  // namespace perdure::tool
