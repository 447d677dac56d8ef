// SPDX-License-Identifier: BSD-3-Clause
//
// Pool<Root, Engines>: a pool file open in this process, its root object, and transactions on it.
//
// A lambda given to update() or view() may run more than once (on conflict): it should change
// nothing outside but its own locals. An exception from it rolls back and is rethrown. Nesting is
// flat. A lambda is compiled for the listed engines only.
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
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/image.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/leaving.hpp"
#include "perdure/api/open.hpp"
#include "perdure/api/options.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/api/receipt.hpp"
#include "perdure/api/tx.hpp"
#include "perdure/api/walk.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/shadow/default_instances.hpp"

namespace perdure {

namespace detail {

/// One engine instance over one open file.
template <class Instance>
class Running final : public DurabilitySource {
 public:
  using Engine = typename Instance::type;
  explicit Running(Opened opened)
      : file_(std::move(opened.file)),
        engine(std::make_unique<Engine>(*file_, opened.config, opened.recovery)),
        completions_([this](std::uint64_t id) { return wait_durable(id); }) {}

  Status wait_durable(std::uint64_t id) override {
    if (inherited()) return engine->core().why();
    if (id <= closed_at()) return {};
    Status s = base::ensure_thread_slot();
    return s.ok() ? engine->wait(id) : s;
  }
  [[nodiscard]] std::uint64_t durable_now() const noexcept {
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
  Status checkpoint() {
    Status s = base::ensure_thread_slot();
    return s.ok() ? engine->checkpoint() : s;
  }
  Status close() {
    if (Status s = base::ensure_thread_slot(); !s.ok()) return s;
    const std::uint64_t last = engine->stats().last_id;
    Status s = engine->close();
    // Where ids are commit timestamps, an update that changed nothing may have returned an id above
    // the last one drawn: everything up to it is durable now.
    if (s.ok()) closed_at_.store(std::max(last, engine->durable_id()), std::memory_order_release);
    return s;
  }
  [[nodiscard]] pool::OpenPool& file() noexcept { return *file_; }
  /// Returns whether this is a forked child's copy. Its threads, mapping and descriptors are the
  /// parent's, and another of the parent's threads may have held any of its mutexes: nothing of it
  /// is used except state() and why(), and it is never destroyed.
  [[nodiscard]] bool inherited() const noexcept { return engine->core().forked(); }
  /// Throws error(closed) in a forked child.
  void must_be_own() const {
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
  std::atomic<std::uint64_t> closed_at_{0};
  Completions completions_;  // last: its thread ends first
};

}  // namespace detail

/// A pool that is open in this process. `Root` is the struct that the pool begins with; `Engines`
/// lists the engine instances that the program is compiled for (see below).
template <class Root, class Engines = default_engines>
class Pool;

/// A pool file open in this process, its root object, and transactions on it.
///
/// Thread safety: update, view, stats, checkpoint and durable_id from any thread at once; close,
/// moving and the destructor when no other thread is in a call. A transaction must not wait for
/// another thread's transaction. Errors that every call on an open pool may give: `poisoned`,
/// `closed`, and from a thread's first call `too_many_threads`.
template <class Root, class... Instances>
class Pool<Root, engines<Instances...>> {
  static_assert(sizeof...(Instances) > 0, "perdure::Pool: the list of engines is empty");
  static_assert(std::is_trivially_destructible_v<Root>,
                "perdure::Pool: a root object has no destructor: hold text and elements in "
                "perdure::string, perdure::vector, perdure::map, ..., which lie in the pool, not "
                "in std::string or other classes that own memory");

 public:
  /// Opens or creates the pool. Throws perdure::error and nothing else: io, busy, corrupt,
  /// incompatible, full, read_only, not_found, exists, invalid, unsupported, out_of_memory (DRAM or
  /// address space), too_many_threads. After a failure an existing pool is unchanged or recovered;
  /// a new one has left no file, unless its removal failed too.
  static Pool open(const std::string& path, const Options& options = {}) {
    return try_open(path, options).value();
  }
  /// open() with the failure as a Status. Throws nothing.
  static Result<Pool> try_open(const std::string& path, const Options& options = {}) {
    return try_open_on(path, options, nullptr, false);
  }
  /// Opens on a medium that the caller made (tests, crash exploration).
  static Result<Pool> try_open_on(const std::string& path, const Options& options,
                                  std::unique_ptr<medium::Medium> medium, bool fresh) {
    if constexpr (!(std::is_same_v<Instances, any_engine> && ...))
      if (!options.trace.empty())
        return failure(Code::invalid, path, "Options::trace for engines that are compiled in",
                       "a Pool<Root, engines<any_engine>>",
                       "leave it empty, or open the pool so to record it");
    try {
      const Listed candidates = listed();
      auto opened = detail::open_pool(path, options, candidates.entries, detail::root_type<Root>(),
                                      std::move(medium), fresh);
      if (!opened) return opened.status();
      opened->file->drop_unless_kept();
      Pool pool;
      pool.index_ = candidates.instance[opened->index];
      pool.name_ = opened->config.instance;
      pool.durability_ = options.durability;
      Root* const root =
          reinterpret_cast<Root*>(opened->file->view() + opened->file->header().root_offset);
      const bool empty = opened->recovery.last_id == 0 && !opened->file->read_only();
      pool.start(std::move(*opened), std::index_sequence_for<Instances...>());
      pool.root_ = root;  // from here on shut() has something to close
      if (empty) pool.first_root();
      pool.file().keep();
      return pool;
    } catch (...) {
      return detail::opening_failed(path);
    }
  }

  /// Takes over the open pool; `other` may only be destroyed or assigned to. Receipts stay valid.
  Pool(Pool&& other) noexcept
      : running_(std::move(other.running_)),
        root_(std::exchange(other.root_, nullptr)),
        index_(other.index_),
        name_(other.name_),
        durability_(other.durability_) {}
  /// Closes this pool as the destructor does, and takes over the other.
  Pool& operator=(Pool&& other) noexcept {
    if (this != &other) {
      shut();
      running_ = std::move(other.running_);
      root_ = std::exchange(other.root_, nullptr);
      index_ = other.index_;
      name_ = other.name_;
      durability_ = other.durability_;
    }
    return *this;
  }
  /// Closes the pool if close() was not called; a failure then is not reported (the next opening
  /// recovers). Throws nothing.
  ~Pool() { shut(); }

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
    return update(durability_, std::forward<F>(f));
  }
  /// update() that returns when `durability` says so, whatever the pool was opened with.
  template <class F>
  auto update(Durability durability, F&& f) {
    return with([&](auto& running) {
      using Transaction = typename std::remove_reference_t<decltype(*running.engine)>::Transaction;
      using R = detail::outside<std::invoke_result_t<F&, Tx<Transaction>&, Root&>>;
      static_assert(detail::leaves_a_transaction<R>,
                    "perdure: update()'s lambda must not return a pool pointer, reference or "
                    "cursor, nor a value that holds one, "
                    "out of its transaction: return copies of what it names (a pointer to memory "
                    "outside the pool may leave in a captured variable)");
      Root& root = *root_;
      if constexpr (std::is_void_v<R>) {
        const std::uint64_t id =
            engine::run(*running.engine, true, durability, [&](Transaction& transaction) {
              Tx<Transaction> tx(transaction);
              f(tx, root);
            });
        return id != engine::joined ? Receipt<void>(&running, id) : Receipt<void>(nullptr, 0);
      } else {
        std::optional<R> value;
        const std::uint64_t id =
            engine::run(*running.engine, true, durability, [&](Transaction& transaction) {
              Tx<Transaction> tx(transaction);
              value.emplace(static_cast<R>(f(tx, root)));
            });
        return id != engine::joined ? Receipt<R>(&running, id, std::move(*value))
                                    : Receipt<R>(nullptr, 0, std::move(*value));
      }
    });
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
    return view(Durability::async, std::forward<F>(f));
  }
  /// view(durable, f): everything that f saw is durable when it returns.
  template <class F>
  auto view(Durability durability, F&& f) {
    return with([&](auto& running) {
      using Transaction = typename std::remove_reference_t<decltype(*running.engine)>::Transaction;
      using R = std::invoke_result_t<F&, ReadTx<Transaction>&, const Root&>;
      static_assert(detail::leaves_a_transaction<R>,
                    "perdure: view()'s lambda must not return a pool pointer, reference or cursor, "
                    "nor a value that holds one, "
                    "out of its transaction: return copies of what it names (a pointer to memory "
                    "outside the pool may leave in a captured variable)");
      auto& transaction = running.engine->transaction();
      if (engine::DirectView<Transaction> direct(transaction);
          __builtin_expect(static_cast<bool>(direct), 1)) {
        ReadTx<Transaction> tx(transaction);
        if constexpr (std::is_void_v<R>) {
          f(tx, std::as_const(*root_));
          return seen_by_view(running, durability, direct.end(durability != Durability::async));
        } else {
          R value = f(tx, std::as_const(*root_));
          seen_by_view(running, durability, direct.end(durability != Durability::async));
          return value;
        }
      }
      return view_in_steps<R>(running, durability, f);
    });
  }

  /// Checkpoints, marks the pool clean, and refuses work from then on. Receipts stay valid. Throws
  /// perdure::error when it could not (io, or invalid inside a transaction), or std::bad_alloc.
  /// What was acknowledged is kept even then: by the destructor, or by the next opening's recovery.
  CloseReport close() {
    const auto start = std::chrono::steady_clock::now();
    CloseReport report;
    with([&](auto& running) {
      running.must_be_own();
      outside(running, "close()");
      report.stats = running.engine->stats();
      running.close().or_throw();
    });
    report.clean = true;
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  }
  /// Throws std::bad_alloc.
  [[nodiscard]] Stats stats() {
    return with([](auto& running) {
      running.must_be_own();
      return running.engine->stats();
    });
  }
  /// Returns the id up to which every transaction is durable. Throws error(closed) in a forked
  /// child, and nothing else.
  [[nodiscard]] std::uint64_t durable_id() {
    return with([](auto& running) {
      running.must_be_own();
      return running.durable_now();
    });
  }
  /// Takes a checkpoint: the data region receives everything that is durable, and the log is
  /// truncated, while transactions run. Throws perdure::error (io, invalid inside a transaction,
  /// busy as update()), and std::bad_alloc: the log is then as it was, or partly truncated.
  void checkpoint() {
    with([](auto& running) {
      running.must_be_own();
      outside(running, "checkpoint()");
      running.checkpoint().or_throw();
    });
  }
  /// As view(f), over data that may be damaged: no read leaves the pool, whatever its pointers say.
  /// It is slower, because each address is checked first. Throws error(corrupt) where one leads out
  /// of the data region, or where pointers lead in a circle.
  template <class F>
  auto checked_view(F&& f) {
    return view([&](auto& tx, const Root& root) {
      detail::CheckedTransaction<std::remove_reference_t<decltype(tx)>> transaction(
          tx, file().view(), file().data_bytes());
      ReadTx<decltype(transaction)> checked(transaction);
      return f(checked, root);
    });
  }
  /// Audits the heap, walks the root's containers and compares: leaks, double use, broken
  /// invariants. Whatever the data is, no read leaves the pool. Run it when no thread updates.
  /// Throws as view(), and std::bad_alloc.
  [[nodiscard]] CheckReport check() {
    const auto* const base = file().view();
    OwnedBlocks owned;
    view([&](auto& tx, const Root& root) {
      owned = owned_blocks(tx, root, base, file().data_bytes());
    });
    CheckReport report = detail::compare_heap(file(), base, std::move(owned.offsets), owned.whole);
    report.problems.insert(report.problems.end(), owned.problems.begin(), owned.problems.end());
    return report;
  }

  /// The pool's header: identity, sizes, format. Valid while the pool is open.
  [[nodiscard]] const pool::Header& header() { return file().header(); }
  /// The open file behind the pool, for tools and tests. Valid while the pool is open.
  [[nodiscard]] pool::OpenPool& file() {
    return with([](auto& running) -> pool::OpenPool& { return running.file(); });
  }
  /// The name of the engine instance that the pool runs: "shadow". Valid for ever.
  [[nodiscard]] std::string_view engine_name() const noexcept { return name_; }

 private:
  Pool() = default;

  struct Listed {
    std::vector<engine::EngineInfo> entries;
    std::vector<std::size_t> instance;  // for each entry, the index of its instance in Instances
  };
  // Made anew for each opening: any_engine's entries are those that are registered by then. No list
  // is made once per process: a forked child would wait for ever for another thread that was making
  // it.
  static Listed listed() {
    Listed l;
    std::size_t n = 0;
    ((engine::add_entries<Instances>(l.entries), l.instance.resize(l.entries.size(), n++)), ...);
    return l;
  }
  template <std::size_t... I>
  void start(detail::Opened opened, std::index_sequence<I...>) {
    ((index_ == I ? (std::get<I>(running_) =
                         std::make_unique<detail::Running<Instances>>(std::move(opened)),
                     void())
                  : void()),
     ...);
  }
  // Calls f with the instance that this pool runs. It costs one well-predicted comparison per
  // listed instance.
  template <std::size_t I = 0, class F>
  decltype(auto) with(F&& f) {
    if constexpr (I + 1 == sizeof...(Instances)) {
      return f(*std::get<I>(running_));
    } else {
      if (index_ == I) return f(*std::get<I>(running_));
      return with<I + 1>(std::forward<F>(f));
    }
  }
  // Returns when what a view saw is durable, if the view asks for that.
  template <class Running>
  [[gnu::always_inline]] static void seen_by_view(Running& running, Durability durability,
                                                  std::uint64_t id) {
    if (durability != Durability::async && id != engine::joined)
      running.wait_durable(id).or_throw();
  }
  // A view that is inside a transaction, or whose reads are not plain.
  template <class R, class Running, class F>
  [[gnu::noinline, gnu::cold]] R view_in_steps(Running& running, Durability durability, F& f) {
    using Transaction = typename std::remove_reference_t<decltype(*running.engine)>::Transaction;
    const Root& root = *root_;
    std::optional<std::conditional_t<std::is_void_v<R>, bool, R>> value;
    const std::uint64_t id =
        engine::run(*running.engine, false, durability, [&](Transaction& transaction) {
          ReadTx<Transaction> tx(transaction);
          if constexpr (std::is_void_v<R>)
            f(tx, root);
          else
            value.emplace(f(tx, root));
        });
    seen_by_view(running, durability, id);
    if constexpr (!std::is_void_v<R>) return std::move(*value);
  }
  // Both calls wait for transactions to end: they would wait for this thread's own for ever.
  template <class Running>
  static void outside(Running& running, const char* call) {
    if (running.engine->transaction().inside())
      throw error(failure(Code::invalid, "",
                          std::string(call) + " inside a transaction on the same pool", {},
                          "leave the transaction first"));
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
      update(Durability::durable, [&](auto& tx, Root& root) {
        each_page([&](std::size_t at, const std::byte* from, std::size_t n) {
          tx.write_bytes(reinterpret_cast<std::byte*>(&root) + at, from, n);
        });
      });
    }
  }
  void shut() noexcept {
    if (std::exchange(root_, nullptr) == nullptr) return;
    const std::uint32_t state = with([](auto& running) { return running.engine->core().state(); });
    if ((state & engine::EngineBase::forked_bit) != 0) {
      // This is a forked child's copy. There is nothing here to end, and waiting for its threads
      // would take for ever.
      std::apply([](auto&... one) { ((void)one.release(), ...); }, running_);
      return;
    }
    try {
      if ((state & ~engine::EngineBase::read_only_bit) == 0)
        with([](auto& running) { (void)running.close(); });
    } catch (...) {  // the next opening recovers
    }
    running_ = {};
  }

  std::tuple<std::unique_ptr<detail::Running<Instances>>...> running_;
  Root* root_ = nullptr;
  std::size_t index_ = 0;
  std::string_view name_;  // the instance's: a literal
  Durability durability_ = Durability::durable;
};

}  // namespace perdure
