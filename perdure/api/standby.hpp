// SPDX-License-Identifier: BSD-3-Clause
//
// Standby<Root>: a further copy of a replicated pool, on another machine, that follows the primary,
// serves reads, and can take over (docs/replication.md). <perdure.hpp> does not include it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "perdure/api/options.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/replication/standby.hpp"
#include "perdure/replication/standby_options.hpp"

namespace perdure {

/// A copy of a replicated pool that follows the log over which it is replicated. It is read through
/// pool(), which shows the state after some whole transaction, durable here, and never an older one
/// than before. Other processes can read it meanwhile, as any pool that is open for writing.
///
/// Thread safety: any thread may call pool(), status() and catch_up(); the other calls end the
/// object's use, so no other call may run beside them.
template <class Root>
class Standby {
 public:
  /// Opens the copy with the pool file `path`, or makes it of a backup and the log, and begins to
  /// follow. It returns before it has caught up. Errors: `not_found` (neither file nor backups),
  /// `invalid` (the pool is not replicated), `unavailable` (the log does not answer), `busy` (a
  /// process has the file open), `unsupported` (an engine that is not replicated), and those of
  /// opening a pool for reading and of making a copy.
  [[nodiscard]] static Result<Standby> try_open(const std::string& path,
                                                const StandbyOptions& options) {
    auto copy = replication::StandbyCopy::open(path, options);
    if (!copy) return copy.status();
    Options reads;
    reads.read_only = true;
    reads.medium = options.medium;
    reads.readers = options.readers;
    auto pool = Pool<Root>::try_open(path, reads);
    if (!pool) return pool.status();
    return Standby(path, options, std::move(*copy), std::move(*pool));
  }
  /// The same; throws perdure::error.
  [[nodiscard]] static Standby open(const std::string& path, const StandbyOptions& options) {
    return std::move(try_open(path, options).value());
  }

  /// The copy, open for reading: view(), snapshot(), refresh(), wait_for(id), check(), backup().
  /// A primary's receipt has the id with which a client reads what it wrote there.
  [[nodiscard]] Pool<Root>& pool() noexcept { return *pool_; }
  /// How far it is.
  [[nodiscard]] StandbyStatus status() const { return copy_->status(); }
  /// Waits until this copy has all that the log had at the call. Errors: `unavailable` after
  /// `patience`; why it follows no more: `diverged`, `expired`, `corrupt`, `incompatible`, `io`.
  [[nodiscard]] Status try_catch_up(std::chrono::milliseconds patience) {
    return copy_->catch_up(patience);
  }
  /// The same; throws perdure::error.
  void catch_up(std::chrono::milliseconds patience) { try_catch_up(patience).or_throw(); }

  /// Waits until this copy has taken over by itself (StandbyOptions::take_over_after), and is to be
  /// promoted; false after `patience`. Errors: as try_catch_up(), except `unavailable`.
  [[nodiscard]] Result<bool> try_took_over(std::chrono::milliseconds patience) {
    return copy_->took_over(patience);
  }
  /// The same; throws perdure::error.
  [[nodiscard]] bool took_over(std::chrono::milliseconds patience) {
    return try_took_over(patience).value();
  }

  /// Ends the standby and closes the pool in order.
  [[nodiscard]] Status try_close() {
    pool_.reset();
    return copy_->close();
  }
  /// The same; throws perdure::error.
  void close() { try_close().or_throw(); }

  /// Makes this copy the primary: it claims a term with everything that the log has, unless it has
  /// taken over already, and opens the pool for writing. The primary of before, should it still
  /// run, is deposed: it refuses work from its next append on. `options.replicate` and
  /// `options.medium` are the standby's. Errors: `unavailable` (the log does not answer within the
  /// patience; try `Pool<Root>::open()` with the log, or a standby again), `deposed` (a third copy
  /// was faster), why it has ended, and those of opening a pool.
  [[nodiscard]] Result<Pool<Root>> try_promote(Options options = {}) && {
    pool_.reset();
    if (Status s = copy_->claim(); !s.ok()) return s;
    copy_.reset();
    options.replicate = options_.replicate;
    options.medium = options_.medium;
    options.create = false;
    return Pool<Root>::try_open(path_, options);
  }
  /// The same; throws perdure::error.
  [[nodiscard]] Pool<Root> promote(Options options = {}) && {
    return std::move(std::move(*this).try_promote(std::move(options)).value());
  }

 private:
  Standby(std::string path, const StandbyOptions& options,
          std::unique_ptr<replication::StandbyCopy> copy, Pool<Root>&& pool)
      : path_(std::move(path)), options_(options), copy_(std::move(copy)), pool_(std::move(pool)) {}

  std::string path_;
  StandbyOptions options_;
  std::unique_ptr<replication::StandbyCopy> copy_;
  std::optional<Pool<Root>> pool_;  // after it: it ends first
};

}  // namespace perdure
