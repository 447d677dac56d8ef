// SPDX-License-Identifier: BSD-3-Clause
//
// EngineInfo: a registered instance as data: what opening, tools and tests need to know about it
// without its types.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "perdure/engine/engine.hpp"
#include "perdure/engine/instance.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine {

struct EngineInfo {
  std::string_view name, family;
  std::string_view tm;  ///< "stm": tm::Stm::name
  Isolation isolation;
  pool::ViewPolicy view;
  pool::Identity (*identity)(const Config&);  ///< all except the engine's name
  Status (*recover)(pool::OpenPool&, Recovery&);
  /// Allocates what its session needs of the log beyond each ring's first page.
  Status (*prepare_log)(pool::OpenPool&) = nullptr;
  bool ring_records = true;  ///< its rings hold log/record.hpp's records
  /// Its shadow may be smaller than the pool, and is where limits_shadow returns true.
  bool pages = false;
  bool (*limits_shadow)(const Config&) = nullptr;
  /// It keeps to Config::max_resident.
  bool limits_resident = false;
  bool has_snapshots = false;  ///< snapshots.hpp
  /// It keeps pool::ReaderWords: other processes can read beside it (follow/follower.hpp).
  bool serves_readers = false;
  /// Its checkpoints keep the checksums of pages (pool/page_checksums.hpp).
  bool keeps_checksums = false;
  /// Its transactions are behind virtual calls: DynamicEngine makes it, and follows pools, too.
  bool dynamic = false;
  bool pipelined_only = false;  ///< it can't open a pool of the strict order
  bool strict_only = false;     ///< it can't open a pool of the pipelined order
  bool keeps_data = true;       ///< false: what transactions store is gone when the pool is closed
  /// Returns whether this machine has what it needs; null: every machine has.
  Status (*supported)() = nullptr;

  /// Returns ok, or what was found here and what it needs (`unsupported`). Opening checks it; code
  /// that loops over all engines skips those that fail.
  [[nodiscard]] Status runs_here() const { return supported == nullptr ? Status() : supported(); }
};

/// Recovers a pool with its engine. Calls `plan.progress` for the beginning and the end, and the
/// engine calls it in between; it is not called for a pool that was closed.
inline Status recover(const EngineInfo& entry, pool::OpenPool& file, Recovery& report,
                      const log::RecoveryPlan& plan) {
  using Stage = log::RecoveryProgress::Stage;
  if (Status s = file.hold_readers(); !s.ok()) return s;
  const pool::Header& header = file.header();
  const bool told = header.clean == 0 && plan.progress;
  if (told) plan.progress({Stage::read, 0, std::uint64_t{header.ring_count} * header.ring_bytes});
  report.plan = &plan;
  const Status status = entry.recover(file, report);
  report.plan = nullptr;
  if (told && status.ok()) plan.progress({Stage::apply, report.bytes, report.bytes});
  return status;
}

/// What recovery is, of every engine. A pool that was closed in order needs none. Else E::recover
/// makes the data region the state of a set of whole transactions, and says in `report` up to which
/// id; start_session publishes that, and empties the rings, in one write of the header. So the
/// header does not change before what it will say is durable.
template <class E>
Status recover_by(pool::OpenPool& file, Recovery& report) {
  const pool::Header& header = file.header();
  report.was_clean = header.clean != 0;
  report.last_id = header.checkpoint_id;
  if (report.was_clean) return {};
  const auto start = std::chrono::steady_clock::now();
  if (Status s = E::recover(file, report); !s.ok()) return s;
  file.recovered(report.last_id);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

/// Returns the entry of one of an instance's names.
template <class Instance>
EngineInfo entry_of(const InstanceName& n) {
  using E = typename Instance::type;
  EngineInfo e{n.name,       n.family,       E::tm_name, Instance::isolation, E::view_policy,
               &E::identity, &recover_by<E>, nullptr,    E::ring_records};
  if constexpr (requires(pool::OpenPool& f) { E::prepare_log(f); }) e.prepare_log = &E::prepare_log;
  if constexpr (requires { E::paged; }) e.pages = E::paged;
  if constexpr (requires(const Config& c) { E::limits_shadow(c); })
    e.limits_shadow = &E::limits_shadow;
  if constexpr (requires { E::limits_resident; }) e.limits_resident = E::limits_resident;
  if constexpr (requires(E& engine) { engine.snapshots(); }) e.has_snapshots = true;
  if constexpr (requires { E::serves_readers; }) e.serves_readers = E::serves_readers;
  if constexpr (requires { E::keeps_checksums; }) e.keeps_checksums = E::keeps_checksums;
  if constexpr (requires { E::pipelined_only; }) e.pipelined_only = E::pipelined_only;
  if constexpr (requires { E::strict_only; }) e.strict_only = E::strict_only;
  if constexpr (requires { E::keeps_data; }) e.keeps_data = E::keeps_data;
  if constexpr (requires { E::supported(); }) e.supported = &E::supported;
  return e;
}

/// Adds an instance's entries: one for each of its names.
template <class Instance>
void add_entries(std::vector<EngineInfo>& all) {
  if constexpr (requires { Instance::entries(); }) {
    for (const EngineInfo& e : Instance::entries()) all.push_back(e);
  } else {
    for (const InstanceName& n : Instance::names) all.push_back(entry_of<Instance>(n));
  }
}

}  // namespace perdure::engine
