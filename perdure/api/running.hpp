// SPDX-License-Identifier: BSD-3-Clause
//
// Running<Instance>: an engine over one open file, with the engine's type. Sources that run
// transactions of one engine include it; programs see RunningEngine (pool_base.hpp).
//
// Thread safety: as Pool's calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "perdure/api/open.hpp"
#include "perdure/api/pool_base.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/engine/snapshots.hpp"
#include "perdure/engine/trim.hpp"

namespace perdure::detail {

/// One engine instance over one open file.
template <class Instance>
class Running final : public RunningEngine {
 public:
  using Engine = typename Instance::type;
  explicit Running(Opened opened)
      : file_(std::move(opened.file)),
        engine(std::make_unique<Engine>(*file_, opened.config, opened.recovery)),
        archive_(std::move(opened.archive)),
        primary_(std::move(opened.primary)),
        completions_([this](std::uint64_t id) { return complete(id); }) {
    if (archive_ != nullptr || primary_ != nullptr)
      follow_log(archive_.get(), primary_.get(), perdure::engine::followed_log_of(*engine), *file_);
  }

  Status wait_durable(std::uint64_t id) override {
    if (inherited()) return engine->core().why();
    if (id <= closed_at()) return {};
    Status s = base::ensure_thread_slot();
    return s.ok() ? engine->wait(id) : s;
  }
  [[nodiscard]] std::uint64_t durable_now() const noexcept override {
    const std::uint64_t closed = closed_at();
    return closed != 0 ? closed : engine->durable_id();
  }
  /// `id` is that of a transaction whose update() has returned. In the strict order that
  /// transaction is durable, although an older one may not be so yet.
  [[nodiscard]] bool is_durable(std::uint64_t id) const noexcept override {
    return !inherited() && (engine->strict() || durable_now() >= id);
  }
  void when_durable(std::uint64_t id, std::function<void(Status)> f) override {
    if (inherited()) return f(engine->core().why());
    if (is_durable(id)) return f(Status());
    completions_.add(id, std::move(f));
  }
  Status wait_acknowledged(std::uint64_t id, Ack level) override {
    Status s = wait_durable(id);
    return s.ok() ? detail::wait_acknowledged(primary_.get(), *file_, id, level) : s;
  }
  [[nodiscard]] bool is_acknowledged(std::uint64_t id, Ack level) const noexcept override {
    return !inherited() && detail::is_acknowledged(primary_.get(), id, level);
  }
  void when_acknowledged(std::uint64_t id, Ack level, std::function<void(Status)> f) override {
    if (inherited()) return f(engine->core().why());
    if (is_acknowledged(id, level)) return f(Status());
    // What forbids the level is known at once.
    if (Status s = detail::wait_acknowledged(primary_.get(), *file_, 0, level); !s.ok())
      return f(std::move(s));
    completions_of(level).add(id, std::move(f));
  }
  Status checkpoint() override {
    Status s = base::ensure_thread_slot();
    return s.ok() ? engine->checkpoint() : s;
  }
  Result<Trimmed> trim(std::uint64_t max_bytes) override {
    Status s = base::ensure_thread_slot();
    if (!s.ok()) return s;
    return perdure::engine::trim(*engine, max_bytes);
  }
  Status close() override {
    if (Status s = base::ensure_thread_slot(); !s.ok()) return s;
    const std::uint64_t last = engine->stats().last_id;
    Status s = engine->close();
    // Where ids are commit timestamps, an update that changed nothing may have returned an id above
    // the last one drawn: everything up to it is durable now.
    if (s.ok()) closed_at_.store(std::max(last, engine->durable_id()), std::memory_order_release);
    return s;
  }
  Stats stats() override { return engine->stats(); }
  [[nodiscard]] pool::OpenPool& file() noexcept override { return *file_; }
  [[nodiscard]] bool inside() override { return engine->transaction().inside(); }
  [[nodiscard]] std::uint32_t state() const noexcept override { return engine->core().state(); }
  [[nodiscard]] perdure::engine::DynamicRunner* runner() noexcept override {
    if constexpr (requires { engine->runner(); })
      return &engine->runner();
    else
      return nullptr;
  }
  [[nodiscard]] perdure::engine::Snapshots* snapshots() noexcept override {
    return perdure::engine::snapshots_of(*engine);
  }
  [[nodiscard]] backup::Archive* archive() noexcept override { return archive_.get(); }
  [[nodiscard]] replication::Primary* primary() noexcept override { return primary_.get(); }
  [[nodiscard]] perdure::engine::FollowedLog* followed_log() noexcept override {
    return perdure::engine::followed_log_of(*engine);
  }
  [[nodiscard]] perdure::engine::follow::Follower* follower() noexcept override {
    if constexpr (requires { engine->follower(); })
      return engine->follower();
    else
      return nullptr;
  }
  /// Returns whether this is a forked child's copy. Its threads, mapping and descriptors are the
  /// parent's, and another of the parent's threads may have held any of its mutexes: nothing of it
  /// is used except state() and why(), and it is never destroyed.
  [[nodiscard]] bool inherited() const noexcept { return engine->core().forked(); }
  void must_be_own() const override {
    if (inherited()) engine->core().refuse();
  }

 private:
  std::unique_ptr<pool::OpenPool> file_;

 public:
  std::unique_ptr<Engine> engine;

 private:
  // Acquire: pairs with the release in close().
  [[nodiscard]] std::uint64_t closed_at() const noexcept {
    return closed_at_.load(std::memory_order_acquire);
  }
  // For the threads of completions: of a pool's threads one at a time has a reserved number.
  Status complete(std::uint64_t id) {
    const std::lock_guard lock(completing_);
    const base::ReservedSlot slot(base::completion_slot);
    return wait_durable(id);
  }
  // A thread for each level: none waits for another one.
  Completions& completions_of(Ack level) {
    const std::lock_guard lock(levels_);
    return acknowledgements_
        .try_emplace(level,
                     [this, level](std::uint64_t id) {
                       Status s = complete(id);
                       return s.ok() ? detail::wait_acknowledged(primary_.get(), *file_, id, level)
                                     : s;
                     })
        .first->second;
  }
  std::shared_ptr<backup::Archive> archive_;       // its thread reads the engine's log
  std::shared_ptr<replication::Primary> primary_;  // so does its
  std::atomic<std::uint64_t> closed_at_{0};
  std::mutex completing_;  // held by the thread that has the reserved number
  std::mutex levels_;      // guards acknowledgements_
  // Last: their threads end first.
  Completions completions_;
  std::map<Ack, Completions> acknowledgements_;  // above `local`
};

}  // namespace perdure::detail
