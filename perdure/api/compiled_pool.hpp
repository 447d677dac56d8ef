// SPDX-License-Identifier: BSD-3-Clause
//
// Pool<Root, engines<...>>: a pool whose engines are compiled into its transactions, for hot loops.
// An access is then a few inlined instructions of the engine's, and a lambda is compiled once for
// each engine that the list names:
//
//     #include <perdure/api/compiled_pool.hpp>
//     using Pool = perdure::Pool<Root, perdure::engines<perdure::shadow>>;
//
// Its transactions are of the engines' types, so its lambdas, and functions that they call, take
// `auto& tx`. docs/transactions.md says what that is worth.
// Thread safety and errors: as pool.hpp says.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/pool.hpp"
#include "perdure/api/running.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/shadow/default_instances.hpp"

namespace perdure {

/// A pool whose engines are compiled in: the instances that the list names. What it does is what
/// Pool<Root> does.
template <class Root, class... Instances>
class Pool<Root, engines<Instances...>>
    : public TypedPool<Pool<Root, engines<Instances...>>, Root> {
  static_assert(sizeof...(Instances) > 0, "perdure::Pool: the list of engines is empty");

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
  Status open_file(const std::string& path, const Options& options,
                   std::unique_ptr<medium::Medium>* medium, bool fresh) {
    if (!options.trace.empty())
      return failure(Code::invalid, path, "Options::trace for engines that are compiled in",
                     "a Pool<Root>", "leave it empty, or open the pool so to record it");
    const Listed candidates = listed();
    auto opened = detail::open_pool(path, options, candidates.entries, detail::root_type<Root>(),
                                    medium != nullptr ? std::move(*medium) : nullptr, fresh);
    if (!opened) return opened.status();
    opened->file->drop_unless_kept();
    index_ = candidates.instance[opened->index];
    this->take(*opened, options);
    start(std::move(*opened), std::index_sequence_for<Instances...>());
    return {};
  }
  template <std::size_t... I>
  void start(detail::Opened opened, std::index_sequence<I...>) {
    ((index_ == I
          ? (this->running_ = std::make_unique<detail::Running<Instances>>(std::move(opened)),
             void())
          : void()),
     ...);
  }
  // Calls f with the instance that this pool runs. It costs one well-predicted comparison per
  // listed instance.
  template <std::size_t I>
  [[nodiscard]] auto& running() const noexcept {
    using Instance = std::tuple_element_t<I, std::tuple<Instances...>>;
    return static_cast<detail::Running<Instance>&>(*this->running_);
  }
  template <std::size_t I = 0, class F>
  decltype(auto) with(F&& f) {
    if constexpr (I + 1 == sizeof...(Instances)) {
      return f(running<I>());
    } else {
      if (index_ == I) return f(running<I>());
      return with<I + 1>(std::forward<F>(f));
    }
  }
  template <class F>
  auto run_update(Durability durability, F& f) {
    return with([&](auto& running) {
      using Transaction = typename std::remove_reference_t<decltype(*running.engine)>::Transaction;
      static_assert(
          std::is_invocable_v<F&, Tx<Transaction>&, Root&>,
          "perdure: update()'s lambda can't be called with the transaction and the root of "
          "this pool, whose engines are compiled in: it takes `auto& tx` (perdure::tx and "
          "perdure::rtx are the transactions of Pool<Root>)");
      using R = detail::outside<std::invoke_result_t<F&, Tx<Transaction>&, Root&>>;
      static_assert(detail::leaves_a_transaction<R>,
                    "perdure: update()'s lambda must not return a pool pointer, reference or "
                    "cursor, nor a value that holds one, "
                    "out of its transaction: return copies of what it names (a pointer to memory "
                    "outside the pool may leave in a captured variable)");
      Root& root = this->root();
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
  template <class F>
  auto run_view(Durability durability, F& f) {
    return with([&](auto& running) {
      using Transaction = typename std::remove_reference_t<decltype(*running.engine)>::Transaction;
      static_assert(
          std::is_invocable_v<F&, ReadTx<Transaction>&, const Root&>,
          "perdure: view()'s lambda can't be called with the transaction and the root of "
          "this pool, whose engines are compiled in: it takes `auto& tx` (perdure::tx and "
          "perdure::rtx are the transactions of Pool<Root>)");
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
          f(tx, std::as_const(this->root()));
          return seen_by_view(running, durability, direct.end(durability != Durability::async));
        } else {
          R value = f(tx, std::as_const(this->root()));
          seen_by_view(running, durability, direct.end(durability != Durability::async));
          return value;
        }
      }
      return view_in_steps<R>(running, durability, f);
    });
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
    const Root& root = this->root();
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

  std::size_t index_ = 0;
};

}  // namespace perdure
