// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: loads a text file into a pool, from where an earlier load ended, many rows per
// transaction.
//
// Batches are committed `async`: the next one is cut while the log writes the previous one; at most
// `max_in_flight` are not yet durable. The position is part of each transaction (LOAD-1 in
// store_pool.hpp), so that only time is lost when the process is killed. Everything throws
// perdure::error. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/progress.hpp"
#include "tools/records.hpp"
#include "tools/store_pool.hpp"

namespace perdure::tool {

struct LoadOptions {
  std::string file;
  SpecOptions spec;
  std::size_t batch_rows = 256;
  std::size_t batch_bytes = 1 << 20;  ///< a batch ends at this size, too
  std::size_t max_in_flight = 64;
  /// How many backups are made while the load goes on, each after an equal part of the file:
  /// `backup_name` with .backup-1, .backup-2, ...
  std::uint64_t backups = 0;
  std::string backup_name;
  std::string archive;  ///< the folder where they go instead, if the pool has an archive
};

/// A pool file that was made while the load went on.
struct MadeBackup {
  std::string path;
  std::uint64_t rows = 0, position = 0;  ///< what it has of the file
};

/// A key that the file, or the pool, contains already.
struct RepeatedKey {
  std::string key;
  std::uint64_t line = 0, other_line = 0;  ///< other_line 0: the row was put by hand
};

struct LoadResult {
  bool was_complete = false;                ///< an earlier load had finished
  std::uint64_t rows_before = 0, rows = 0;  ///< loaded from this file by earlier runs, and in total
  std::uint64_t position = 0, bytes = 0;    ///< the end of what is loaded, and what this run read
  std::optional<RepeatedKey> repeated;      ///< the load stopped here; the rows before it stay
  std::vector<MadeBackup> backups;
  Spec spec;
  double seconds = 0;
};

class Loader {
 public:
  /// Reads the whole file once for its identity.
  explicit Loader(LoadOptions options);

  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return identity_.size; }
  /// Call this before a pool is made: it finds faults of the options and of the file's first lines.
  void rehearse();
  LoadResult run(StorePool& pool, Progress& progress);

 private:
  void start(StorePool& pool, const SourceState& state);
  void compare(StorePool& pool, const SourceState& state);
  std::optional<Repeat> append(StorePool& pool, std::span<const BatchRow> batch,
                               std::size_t done = 0);
  bool fill(RecordReader& reader);
  Spec chosen();

  LoadOptions options_;
  SourceFile file_;
  Identity identity_;
  std::optional<RecordReader> reader_;
  std::vector<BatchRow> batch_;
};

}  // namespace perdure::tool
