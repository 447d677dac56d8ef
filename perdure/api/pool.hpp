// SPDX-License-Identifier: BSD-3-Clause
//
// Pool<Root>: a pool file open in this process, its root object, and transactions on it. Its engine
// is chosen when it is opened, and a lambda is compiled once. compiled_pool.hpp has pools whose
// engines are compiled in, for hot loops.
//
// A lambda given to update() or view() may run more than once (on conflict): it should change
// nothing outside but its own locals. An exception from it rolls back and is rethrown. Nesting is
// flat.
// Thread safety: any number of threads may call update, view, stats, checkpoint and durable_id at
// once. Call close and the destructor when no other thread is in a call. A transaction must not
// wait for another thread's transaction.
//
// Errors: each call lists the codes of perdure::error that it throws. Every call on an open pool
// may also give `poisoned` (the medium failed earlier, or a thread of the pool found no memory),
// `closed` and, at a thread's first call, `too_many_threads`. Where the allocator has no memory,
// calls throw std::bad_alloc and say what that means; calls that return a Status or a Result for an
// error of opening give `out_of_memory` for it. Nothing else is thrown, except by the caller's own
// functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "perdure/api/image.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/leaving.hpp"
#include "perdure/api/named_tx.hpp"
#include "perdure/api/options.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/api/plan.hpp"
#include "perdure/api/pool_base.hpp"
#include "perdure/api/receipt.hpp"
#include "perdure/api/snapshot.hpp"
#include "perdure/api/tx.hpp"
#include "perdure/api/walk.hpp"
#include "perdure/engine/any_engine.hpp"

namespace perdure {

namespace detail {

/// False, for a static_assert that fails where its template is used.
template <class>
inline constexpr bool always_false = false;

/// A lambda, as what runs transactions calls it.
template <class F, class Root, class R>
struct Call {
  F& f;
  Root& root;
  std::optional<std::conditional_t<std::is_void_v<R>, bool, R>> value = {};

  template <class TxT>
  static void run(engine::DynamicTransaction& transaction, void* arg) {
    Call& call = *static_cast<Call*>(arg);
    TxT tx(transaction);
    if constexpr (std::is_void_v<R>)
      call.f(tx, call.root);
    else
      call.value.emplace(static_cast<R>(call.f(tx, call.root)));
  }
};

/// A view whose reads are plain, until its end.
class DynamicView {
 public:
  DynamicView(engine::DynamicRunner& runner, engine::DynamicTransaction& transaction) noexcept
      : runner_(runner), transaction_(&transaction) {}
  ~DynamicView() {
    if (__builtin_expect(transaction_ != nullptr, 0)) runner_.leave_direct_view(*transaction_);
  }
  DynamicView(const DynamicView&) = delete;
  DynamicView& operator=(const DynamicView&) = delete;
  /// Ends it. Returns the id that bounds what it saw if `bound` is set, otherwise 0.
  std::uint64_t end(bool bound) {
    return runner_.end_direct_view(*std::exchange(transaction_, nullptr), bound);
  }

 private:
  engine::DynamicRunner& runner_;
  engine::DynamicTransaction* transaction_;
};

}  // namespace detail

/// Returns what opening the pool at `path` with this root type would do, and writes nothing. Use it
/// before version 2 of a program opens a pool. Errors: those of opening for reading, among them
/// `read_only` for a pool that was not closed in order, and `incompatible` for a pool without a
/// catalog.
template <class Root>
[[nodiscard]] Result<MigrationPlan> migration_plan(const std::string& path,
                                                   const Migration& migrate = {}) {
  return detail::plan_of_file(path, detail::root_type<Root>(), migrate);
}

/// What pools of all engines do with their root object. `Derived` is the pool: it has
/// `open_file(path, options, medium, fresh) -> Status`, `run_update(durability, f)` and
/// `run_view(durability, f)`.
template <class Derived, class Root>
class TypedPool : public PoolBase {
  static_assert(std::is_trivially_destructible_v<Root>,
                "perdure::Pool: a root object has no destructor: hold text and elements in "
                "perdure::string, perdure::vector, perdure::map, ..., which lie in the pool, not "
                "in std::string or other classes that own memory");

 public:
  /// Opens or creates the pool. Throws perdure::error and nothing else: io, busy, corrupt,
  /// incompatible, full, read_only, not_found, exists, invalid, unsupported, out_of_memory (DRAM or
  /// address space), too_many_threads. After a failure an existing pool is unchanged or recovered;
  /// a new one has left no file, unless its removal failed too.
  static Derived open(const std::string& path, const Options& options = {}) {
    return try_open(path, options).value();
  }
  /// open() with the failure as a Status. Throws nothing.
  static Result<Derived> try_open(const std::string& path, const Options& options = {}) {
    return open_with(path, options, nullptr, false);
  }
  /// Opens on a medium that the caller made (tests, crash exploration).
  static Result<Derived> try_open_on(const std::string& path, const Options& options,
                                     std::unique_ptr<medium::Medium> medium, bool fresh) {
    return open_with(path, options, &medium, fresh);
  }

  /// Runs f(tx, root) as a transaction; returns a receipt with f's value (if that is a tx(field),
  /// the field's value).
  /// Throws what f throws. Throws perdure::error, after which nothing has changed: full, too_big,
  /// out_of_memory (address space for a pool that grows), io (it can't grow), busy (SoftWrAP:
  /// SoftwrapOptions::long_wrap_ms), read_only, invalid (inside a view). The one exception is
  /// `poisoned`: when the pool is opened again, the transaction may turn out to be durable or not.
  /// Throws std::bad_alloc where the allocator has no memory: nothing has changed, and the pool
  /// stays usable.
  /// Once a transaction has committed, its update() throws nothing but `poisoned`.
  template <class F>
  auto update(F&& f) {
    return self().run_update(this->durability_, f);
  }
  /// update() that returns when `durability` says so, whatever the pool was opened with.
  template <class F>
  auto update(Durability durability, F&& f) {
    return self().run_update(durability, f);
  }
  /// update() of a replicated pool that returns when the transaction has reached `level`
  /// (docs/replication.md); its durability is the pool's. Throws as update(), and as
  /// Receipt::wait(level): the transaction is committed then, and visible in this copy. Inside
  /// another transaction it waits for nothing: the outer one's level counts.
  template <class F>
  auto update(Ack level, F&& f) {
    auto receipt = self().run_update(this->durability_, f);
    receipt.reach(level);
    return receipt;
  }
  /// update() with the perdure::error as a Status; what f throws is still rethrown, and so is
  /// std::bad_alloc.
  template <class F>
  auto try_update(F&& f) -> Result<decltype(this->update(std::forward<F>(f)))> {
    try {
      return update(std::forward<F>(f));
    } catch (const error& e) {
      return e.status();
    }
  }

  /// Runs f(tx, root) as a read-only transaction over one consistent state; returns what f returns.
  /// Throws what f throws, perdure::error (the header's codes), and std::bad_alloc. A long view can
  /// delay updates, and the views and checkpoints behind them, until it ends: those threads are
  /// blocked, without using a processor. Keep it short: read a large structure in several views of
  /// a bounded number of elements each, or copy what is needed and compute afterwards.
  template <class F>
  auto view(F&& f) {
    return self().run_view(Durability::async, f);
  }
  /// view(durable, f): everything that f saw is durable when it returns.
  template <class F>
  auto view(Durability durability, F&& f) {
    return self().run_view(durability, f);
  }

  /// Opens a snapshot of the newest state, which can be read for as long as it is needed, while
  /// transactions go on (snapshot.hpp). It contains every transaction that has returned. With the
  /// pipelined order they may not be durable yet; snapshot(durable) waits until they are. The call
  /// waits for the updates of other threads that are open, and for no view. Throws perdure::error:
  /// unsupported where the pool's engine has none, invalid inside a transaction on the pool,
  /// expired where the memory for snapshots does not last for the opening
  /// (ShadowOptions::snapshot_memory); and std::bad_alloc. Thread safety: any thread.
  [[nodiscard]] Snapshot<Root> snapshot(Durability durability = Durability::async) {
    return {this->open_snapshot(durability), root()};
  }

  /// Makes a backup of the newest state in a folder, while transactions go on; with a folder that
  /// has earlier backups, only what has changed since is written. Without a folder it goes to the
  /// pool's archive (Options::archive), with which every later state can be restored, too;
  /// otherwise this one state. `perdure restore` and perdure::restore() make a pool of it.
  /// `progress` is called now and then; what it throws ends the backup. Throws as snapshot() and
  /// Snapshot::copy_to(), and perdure::error: not_found where the folder's parent does not exist,
  /// invalid without a folder in a pool without an archive. Thread safety: any thread.
  BackupReport backup(
      const std::string& folder = {},
      const std::function<void(std::uint64_t done, std::uint64_t bytes)>& progress = {}) {
    const auto state = this->open_snapshot(Durability::durable);
    const detail::SnapshotReader inside(*state);
    return this->back_up(*state, folder, progress);
  }

  /// The same of a state that was kept before, a snapshot of this pool (`invalid`: of another one).
  /// It waits until that state is durable in the pool.
  BackupReport backup(
      const Snapshot<Root>& state, const std::string& folder = {},
      const std::function<void(std::uint64_t done, std::uint64_t bytes)>& progress = {}) {
    const std::shared_ptr<engine::OpenSnapshot> snapshot = state.opened();
    const detail::SnapshotReader inside(*snapshot);
    return this->back_up(*snapshot, folder, progress);
  }

  /// As view(f), over data that may be damaged: no read leaves the pool, whatever its pointers say.
  /// It is slower, because each address is checked first. `tx` is a perdure::rtx. Throws
  /// error(corrupt) where an address leads out of the data region, or where pointers lead in a
  /// circle.
  template <class F>
  auto checked_view(F&& f) {
    return view([&](auto& tx, const Root& root) {
      detail::CheckedTransaction<std::remove_reference_t<decltype(tx)>> transaction(
          tx, this->data(), this->data_bytes());
      rtx checked(transaction);
      return f(checked, root);
    });
  }
  /// After an opening with Migration::lazy: rewrites up to `n` rows of each table whose rows need a
  /// step, beside other transactions. Returns whether none is left; the pool can then be opened by
  /// later versions and without the steps. The first call reads all rows in one view and keeps the
  /// keys of those that are left in DRAM. Throws as update().
  bool settle(std::uint64_t n);

  /// Audits the heap, walks the root's containers and compares: leaks, double use, broken
  /// invariants; and compares the pages of the pool's file with their checksums (scrub()). Whatever
  /// the data is, no read leaves the pool. Where the engine has snapshots and the caller is in no
  /// transaction on the pool, it checks one (Snapshot::check): other threads may update meanwhile.
  /// Otherwise run it when no thread updates. Throws as view(), snapshot() and scrub(), and
  /// std::bad_alloc.
  [[nodiscard]] CheckReport check() {
    if (this->can_open_snapshot()) return this->with_pages(snapshot().check());
    OwnedBlocks owned;
    view([&](auto& tx, const Root& root) {
      owned = owned_blocks(tx, root, this->data(), this->data_bytes());
      this->own_catalog(owned, [&](void* to, const std::byte* from, std::size_t n) {
        tx.read_bytes(to, from, n);
      });
    });
    return this->with_pages(this->compare(std::move(owned)));
  }

 protected:
  TypedPool() = default;
  /// Takes over an open pool.
  TypedPool(TypedPool&&) noexcept = default;
  /// Closes this pool, and takes over the other.
  TypedPool& operator=(TypedPool&&) noexcept = default;
  ~TypedPool() = default;
  /// The root object.
  [[nodiscard]] Root& root() const noexcept { return *reinterpret_cast<Root*>(this->root_); }

 private:
  [[nodiscard]] Derived& self() noexcept { return static_cast<Derived&>(*this); }
  // Takes over what `medium` leads to; null: the path is opened.
  static Result<Derived> open_with(const std::string& path, const Options& options,
                                   std::unique_ptr<medium::Medium>* medium, bool fresh) {
    try {
      Derived pool;
      if (Status s = pool.open_file(path, options, medium, fresh); !s.ok()) return s;
      const std::shared_ptr<const detail::Plan> plan = std::move(pool.plan_);
      if (plan->drops_copies) pool.drop_copies(plan->migrate.batch);
      if (!plan->same())
        pool.change_layout(*plan);
      else if (pool.empty_)
        pool.first_root();
      if (plan->pending) pool.catch_up(plan);
      if (plan->adds_catalog) pool.add_catalog();
      pool.begin_archive();
      pool.keep();
      return pool;
    } catch (...) {
      return detail::opening_failed(path);
    }
  }
  // A pool without a transaction has a root of zeros: members with other initial values are stored
  // first. Pages of zeros are left out, so that a large root needs no log of its size.
  void first_root() {
    if constexpr (std::is_default_constructible_v<Root>) {
      constexpr std::size_t page = 4096;
      detail::Image<Root> image;
      ::new (static_cast<void*>(image.at())) Root();
      const auto each_page = [&](auto&& f) {
        for (std::size_t at = 0; at < sizeof(Root); at += page) {
          const std::byte* const from = image.at() + at;
          const std::size_t n = std::min(sizeof(Root) - at, page);
          if (std::any_of(from, from + n, [](std::byte b) { return b != std::byte{0}; }))
            f(at, from, n);
        }
      };
      bool zero = true;
      each_page([&](auto...) { zero = false; });
      if (zero) return;
      this->update(Durability::durable, [&](auto& tx, Root& root) {
        each_page([&](std::size_t at, const std::byte* from, std::size_t n) {
          tx.write_bytes(reinterpret_cast<std::byte*>(&root) + at, from, n);
        });
      });
    }
  }
  // pool_evolve.hpp.
  void add_catalog();
  void change_layout(const detail::Plan& plan);
  void refuse_duplicates(const detail::Plan& plan);
  void copy_objects(const detail::Plan& plan, detail::Copies& copies);
  void lead_containers_to_copies(std::uint64_t batch);
  void drop_copies(std::uint64_t batch);
  void catch_up(const std::shared_ptr<const detail::Plan>& plan);
  void finish_catching_up();
};

/// A pool that is open in this process. `Root` is the struct that the pool begins with. `Engines`
/// says which engines a transaction is compiled for: default_engines, once for whatever engine the
/// pool is opened with; or a list of engines that are compiled in (compiled_pool.hpp).
template <class Root, class Engines = default_engines>
class Pool {
  static_assert(detail::always_false<Engines>,
                "perdure::Pool: engines that are compiled in need #include "
                "<perdure/api/compiled_pool.hpp>, and the instances.hpp of each engine that the "
                "list names");
};

/// A pool file open in this process, its root object, and transactions on it. Transactions are of
/// type perdure::tx and perdure::rtx.
///
/// Thread safety: update, view, stats, checkpoint and durable_id from any thread at once; close,
/// moving and the destructor when no other thread is in a call. A transaction must not wait for
/// another thread's transaction. Errors that every call on an open pool may give: `poisoned`,
/// `closed`, and from a thread's first call `too_many_threads`.
template <class Root>
class Pool<Root, engines<any_engine>> : public TypedPool<Pool<Root, engines<any_engine>>, Root> {
 public:
  /// Takes over the open pool; `other` may only be destroyed or assigned to. Receipts stay valid.
  Pool(Pool&& other) noexcept = default;
  /// Closes this pool as the destructor does, and takes over the other.
  Pool& operator=(Pool&& other) noexcept = default;
  /// Closes the pool if close() was not called; a failure then is not reported (the next opening
  /// recovers). Throws nothing.
  ~Pool() = default;

 private:
  friend class TypedPool<Pool, Root>;
  Pool() = default;

  Status open_file(const std::string& path, const Options& options,
                   std::unique_ptr<medium::Medium>* medium, bool fresh) {
    return this->open_registered(path, options, detail::root_type<Root>(), medium, fresh);
  }
  template <class F>
  auto run_update(Durability durability, F& f) {
    static_assert(std::is_invocable_v<F&, tx&, Root&>,
                  "perdure: update()'s lambda can't be called with a perdure::tx& (or `auto& tx`) "
                  "and the root of this pool");
    using R = detail::outside<std::invoke_result_t<F&, tx&, Root&>>;
    static_assert(detail::leaves_a_transaction<R>,
                  "perdure: update()'s lambda must not return a pool pointer, reference or "
                  "cursor, nor a value that holds one, "
                  "out of its transaction: return copies of what it names (a pointer to memory "
                  "outside the pool may leave in a captured variable)");
    detail::Call<F, Root, R> call{f, this->root()};
    const std::uint64_t id =
        this->runner_->run(true, durability, &detail::Call<F, Root, R>::template run<tx>, &call);
    detail::DurabilitySource* const source = id != engine::joined ? this->source() : nullptr;
    if constexpr (std::is_void_v<R>)
      return Receipt<void>(source, source != nullptr ? id : 0);
    else
      return Receipt<R>(source, source != nullptr ? id : 0, std::move(*call.value));
  }
  template <class F>
  auto run_view(Durability durability, F& f) {
    static_assert(std::is_invocable_v<F&, rtx&, const Root&>,
                  "perdure: view()'s lambda can't be called with a perdure::rtx& (or `auto& tx`) "
                  "and the const root of this pool");
    using R = std::invoke_result_t<F&, rtx&, const Root&>;
    static_assert(detail::leaves_a_transaction<R>,
                  "perdure: view()'s lambda must not return a pool pointer, reference or cursor, "
                  "nor a value that holds one, "
                  "out of its transaction: return copies of what it names (a pointer to memory "
                  "outside the pool may leave in a captured variable)");
    if (auto* const transaction = this->runner_->begin_direct_view();
        __builtin_expect(transaction != nullptr, 1)) {
      detail::DynamicView view(*this->runner_, *transaction);
      rtx direct(*transaction, true);
      if constexpr (std::is_void_v<R>) {
        f(direct, std::as_const(this->root()));
        return this->seen_by_view(durability, view.end(durability != Durability::async));
      } else {
        R value = f(direct, std::as_const(this->root()));
        this->seen_by_view(durability, view.end(durability != Durability::async));
        return value;
      }
    }
    return view_in_steps<R>(durability, f);
  }
  // A view that is inside a transaction, or whose reads are not plain.
  template <class R, class F>
  [[gnu::noinline, gnu::cold]] R view_in_steps(Durability durability, F& f) {
    detail::Call<F, const Root, R> call{f, this->root()};
    const std::uint64_t id = this->runner_->run(
        false, durability, &detail::Call<F, const Root, R>::template run<rtx>, &call);
    this->seen_by_view(durability, id);
    if constexpr (!std::is_void_v<R>) return std::move(*call.value);
  }
  // Returns when what a view saw is durable, if the view asks for that.
  void seen_by_view(Durability durability, std::uint64_t id) {
    if (durability != Durability::async && id != engine::joined) this->wait_for(id);
  }
};

}  // namespace perdure

#include "perdure/api/pool_evolve.hpp"
