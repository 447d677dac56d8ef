// SPDX-License-Identifier: BSD-3-Clause
//
// DynamicEngine: an engine chosen at run time, by name, among all registered instances. Pool<Root>
// is built on it: a lambda is compiled once for all of them, and an access that is not a plain load
// costs a virtual call. any_engine.hpp is the part that programs compile.
//
// On request (Config::trace, PERDURE_TRACE) the accesses are recorded: workload_recorder.hpp.
// registered() is the registry as data. DynamicEngine is compiled once, in dynamic_engine.cpp: this
// header includes no engine.
// Thread safety: that of the engine behind it.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "perdure/engine/any_engine.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/engine_info.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/engine/snapshots.hpp"

namespace perdure::engine::follow {
class Follower;
}

namespace perdure::engine {

class DynamicEngine {
 public:
  /// One thread's transaction, whole: what engine::run needs of it besides its accesses. The
  /// concept Engine (engine.hpp) and TransactionBase (transaction.hpp) say what the calls mean.
  class Transaction : public DynamicTransaction {
   public:
    virtual ~Transaction() = default;
    virtual void begin(bool update) = 0;
    [[nodiscard]] virtual bool inside() const noexcept = 0;
    virtual std::uint64_t commit(Durability durability) = 0;
    virtual void rollback() noexcept = 0;
    virtual void backoff() noexcept = 0;
    [[nodiscard]] virtual std::uint64_t unseen_retries() const noexcept = 0;
    [[nodiscard]] virtual Refusal& refusal() noexcept = 0;
    [[nodiscard]] virtual bool mine(const tm::Conflict& c) const noexcept = 0;
    [[nodiscard]] virtual bool mine(const LogFull& full) const noexcept = 0;
    [[nodiscard]] virtual bool try_direct_view() noexcept = 0;
    virtual void leave_direct_view() noexcept = 0;
    virtual std::uint64_t end_direct_view(bool bound) = 0;

   protected:
    Transaction() = default;
  };

  /// An engine behind virtual calls.
  class Implementation : public DynamicRunner {
   public:
    virtual ~Implementation() = default;
    virtual Transaction& transaction() = 0;
    virtual void wait_for_log_space(Transaction& transaction, LogSpace needed) = 0;
    virtual Status wait(std::uint64_t id) = 0;
    [[nodiscard]] virtual std::uint64_t durable_id() const noexcept = 0;
    [[nodiscard]] virtual bool strict() const noexcept = 0;
    virtual Status checkpoint() = 0;
    virtual Status close() = 0;
    virtual Stats stats() = 0;
    [[nodiscard]] virtual EngineBase& core() noexcept = 0;
    /// Null for an engine that has none.
    [[nodiscard]] virtual Snapshots* snapshots() noexcept = 0;
    /// Null for an engine whose log nothing can follow.
    [[nodiscard]] virtual FollowedLog* followed_log() noexcept = 0;
    /// Null where the pool does not follow another process's.
    [[nodiscard]] virtual follow::Follower* follower() noexcept { return nullptr; }

    // In terms of the calls above; an engine that knows its transactions' type does it in fewer.
    std::uint64_t run(bool update, Durability durability, Body body, void* arg) override;
    DynamicTransaction* begin_direct_view() override;
    std::uint64_t end_direct_view(DynamicTransaction& transaction, bool bound) override;
    void leave_direct_view(DynamicTransaction& transaction) noexcept override;
  };

  using Make = std::unique_ptr<Implementation> (*)(pool::OpenPool&, const Config&, const Recovery&);

  /// Makes the engine that `config.instance` names; for a pool that follows another process's, the
  /// one of follow/reader_engine.hpp.
  DynamicEngine(pool::OpenPool& file, const Config& config, const Recovery& recovery);

  Transaction& transaction() { return engine_->transaction(); }
  void wait_for_log_space(Transaction& transaction, LogSpace needed) {
    engine_->wait_for_log_space(transaction, needed);
  }
  Status wait(std::uint64_t id) { return engine_->wait(id); }
  [[nodiscard]] std::uint64_t durable_id() const noexcept { return engine_->durable_id(); }
  [[nodiscard]] bool strict() const noexcept { return engine_->strict(); }
  Status checkpoint() { return engine_->checkpoint(); }
  Status close() { return engine_->close(); }
  Stats stats() { return engine_->stats(); }
  [[nodiscard]] EngineBase& core() noexcept { return engine_->core(); }
  [[nodiscard]] Snapshots* snapshots() noexcept { return engine_->snapshots(); }
  [[nodiscard]] FollowedLog* followed_log() noexcept { return engine_->followed_log(); }
  [[nodiscard]] follow::Follower* follower() noexcept { return engine_->follower(); }
  [[nodiscard]] DynamicRunner& runner() noexcept { return *engine_; }

 private:
  std::unique_ptr<Implementation> engine_;
};

/// Returns the instances that any_engine chooses from: the product's (registry.hpp), then those
/// that were registered. The span stays valid, and does not include later registrations. Any thread
/// may call it.
std::span<const EngineInfo> registered();
/// Adds an instance, unless there is one of its name; what its strings point at must stay valid.
/// register_engines() in dynamic_engine_over.hpp does it for a list of instances. Any thread may
/// call it. There can be 128 instances: one more ends the process.
void register_engine(const EngineInfo& entry, DynamicEngine::Make make) noexcept;
/// Finds an instance by name; null if there is none.
const EngineInfo* find_instance(std::string_view name);
/// Finds the first of a family, by the name in a pool's header; null if there is none.
const EngineInfo* find_family(std::string_view family);

}  // namespace perdure::engine
