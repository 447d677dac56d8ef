// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a pool, the part that needs no types: it chooses the instance, opens the file, recovers
// and starts the session.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "perdure/api/options.hpp"
#include "perdure/api/plan.hpp"
#include "perdure/api/pool_base.hpp"
#include "perdure/engine/engine_info.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::backup {
class Archive;
}
namespace perdure::replication {
class Primary;
}
namespace perdure::engine {
class FollowedLog;
}

namespace perdure::detail {

struct Opened {
  std::unique_ptr<pool::OpenPool> file;
  std::size_t index = 0;  ///< of the chosen entry
  engine::Config config;
  engine::Recovery recovery;
  /// The changes that give the pool the program's layout; empty in a pool without a catalog.
  Plan plan;
  /// With Options::archive: what the session appends to.
  std::shared_ptr<backup::Archive> archive;
  /// With Options::replicate: what appends the session's log to the replicated one.
  std::shared_ptr<replication::Primary> primary;
};

/// Begins to archive and to replicate the log, in a session without a transaction; null: not so.
/// Throws perdure::error, and std::bad_alloc.
void follow_log(backup::Archive* archive, replication::Primary* primary, engine::FollowedLog* log,
                pool::OpenPool& file);
/// Primary's calls (replication/primary.hpp); for null, what a pool answers that is not replicated.
Status wait_acknowledged(replication::Primary* primary, const pool::OpenPool& file,
                         std::uint64_t id, Ack level);
[[nodiscard]] bool is_acknowledged(const replication::Primary* primary, std::uint64_t id,
                                   Ack level) noexcept;

struct RootType;  // layout.hpp

/// Runs the steps of an opening; until recovery, nothing is written to a pool that exists.
/// `medium`: use this one instead of opening the path (tests); `fresh` formats it. A failure leaves
/// no new file. A success leaves the file, unless the caller calls drop_unless_kept() because it
/// has further steps that may fail.
Result<Opened> open_pool(const std::string& path, const Options& options,
                         std::span<const engine::EngineInfo> candidates, const RootType& root,
                         std::unique_ptr<medium::Medium> medium = nullptr, bool fresh = false);

/// The error `incompatible` for a plan with refusals.
Status refused(const std::string& path, const RootType& root, const pool::CatalogContents& catalog,
               const Plan& plan);
/// Runs callbacks when ids become durable, on a thread that is started at the first use.
class Completions {
 public:
  explicit Completions(std::function<Status(std::uint64_t)> wait);
  ~Completions();  ///< calls the remaining callbacks with the status that wait() returns
  /// Throws error(too_many_threads) where no thread can be started: f is not called then.
  void add(std::uint64_t id, std::function<void(Status)> f);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The heap's part of check(): audits the bitmaps and directory of the data region at `data`, and
/// compares them with `owned` (the offsets of the blocks that containers and the catalog own).
CheckReport compare_heap(const pool::OpenPool& file, const std::byte* data,
                         std::vector<std::uint64_t> owned, bool walked);
/// The comparison alone, with the result of an audit and the offsets of the blocks that it found.
CheckReport compare_heap(pool::HeapAudit audit, std::vector<std::uint64_t> allocated,
                         const pool::OpenPool& file, std::vector<std::uint64_t> owned, bool walked);

}  // namespace perdure::detail
