// SPDX-License-Identifier: BSD-3-Clause
//
// An engine behind DynamicEngine's virtual calls, and register_engines(), which adds the instances
// of a list to those that any_engine chooses from. Only sources that register engines include this:
// each engine is compiled there.
#pragma once

#include <memory>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/instance.hpp"

namespace perdure::engine {

/// Throws error(unsupported).
[[noreturn]] void cannot_emit();

template <class E>
class DynamicTransactionOver final : public DynamicEngine::Transaction {
  using Inner = typename E::Transaction;

 public:
  explicit DynamicTransactionOver(Inner& inner) noexcept : inner_(inner) {}
  [[nodiscard]] Inner& inner() noexcept { return inner_; }
  /// Called when the transaction behind it has begun.
  void begun() noexcept { direct_ = inner_.direct(); }

  void begin(bool update) override {
    inner_.begin(update);
    begun();
  }
  bool inside() const noexcept override { return inner_.inside(); }
  bool in_view() const noexcept override { return inner_.in_view(); }
  std::uint64_t read(const std::uint64_t* a) override { return inner_.read(a); }
  void write(std::uint64_t* a, std::uint64_t v) override {
    change([&] {
      if constexpr (requires { inner_.write_alone(a, v); }) {
        if (__builtin_expect(inner_.write_alone(a, v), 1)) return;
        write_beside_others(a, v);
      } else {
        inner_.write(a, v);
      }
    });
  }
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) override {
    if constexpr (requires { inner_.read_words(to, a, n); })
      inner_.read_words(to, a, n);
    else
      for (std::uint64_t i = 0; i < n; ++i) to[i] = inner_.read(a + i);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) override {
    change([&] { inner_.write_words(a, src, n); });
  }
  std::byte* alloc(std::uint64_t bytes) override {
    return change([&] { return inner_.alloc(bytes); });
  }
  void free(void* p) override {
    try {
      inner_.free(p);
    } catch (...) {
      inner_.refusal().keep_of_free();
      throw;
    }
  }
  void keep_refusal() noexcept override { inner_.refusal().keep(); }
  void emit(std::string_view topic, std::string_view bytes, std::uint16_t schema) override {
    change([&] {
      if constexpr (requires { inner_.emit(topic, bytes, schema); })
        inner_.emit(topic, bytes, schema);
      else
        cannot_emit();
    });
  }
  std::uint64_t commit(Durability durability) override { return inner_.commit(durability); }
  void rollback() noexcept override { inner_.rollback(); }
  void backoff() noexcept override { inner_.backoff(); }
  std::uint64_t unseen_retries() const noexcept override { return inner_.unseen_retries(); }
  Refusal& refusal() noexcept override { return inner_.refusal(); }
  bool mine(const tm::Conflict& c) const noexcept override { return inner_.mine(c); }
  bool mine(const LogFull& full) const noexcept override { return inner_.mine(full); }
  bool try_direct_view() noexcept override {
    if (!inner_.try_direct_view()) return false;
    direct_ = true;
    return true;
  }
  void leave_direct_view() noexcept override { inner_.leave_direct_view(); }
  std::uint64_t end_direct_view(bool bound) override { return inner_.end_direct_view(bound); }

 private:
  // REFUSED-1. Nothing is done where nothing is thrown.
  template <class F>
  [[gnu::always_inline]] decltype(auto) change(F&& f) {
    try {
      return f();
    } catch (...) {
      inner_.refusal().keep();
      throw;
    }
  }
  [[gnu::noinline]] void write_beside_others(std::uint64_t* a, std::uint64_t v) {
    inner_.write(a, v);
  }
  Inner& inner_;
};

template <class E>
class Over final : public DynamicEngine::Implementation {
 public:
  Over(pool::OpenPool& file, const Config& config, const Recovery& recovery)
      : engine_(file, config, recovery) {}

  DynamicEngine::Transaction& transaction() override { return own(); }
  void wait_for_log_space(DynamicEngine::Transaction& transaction, LogSpace needed) override {
    engine_.wait_for_log_space(static_cast<DynamicTransactionOver<E>&>(transaction).inner(),
                               needed);
  }
  Status wait(std::uint64_t id) override { return engine_.wait(id); }
  std::uint64_t durable_id() const noexcept override { return engine_.durable_id(); }
  bool strict() const noexcept override { return engine_.strict(); }
  Status checkpoint() override { return engine_.checkpoint(); }
  Status close() override { return engine_.close(); }
  Stats stats() override { return engine_.stats(); }
  EngineBase& core() noexcept override { return engine_.core(); }
  Snapshots* snapshots() noexcept override { return snapshots_of(engine_); }
  FollowedLog* followed_log() noexcept override { return followed_log_of(engine_); }

  std::uint64_t run(bool update, Durability durability, Body body, void* arg) override {
    Own& outer = own();
    return run_in(engine_, outer.inner(), update, durability, [&](auto&) {
      outer.begun();
      body(outer, arg);
    });
  }
  DynamicTransaction* begin_direct_view() override {
    Own& outer = own();
    return outer.try_direct_view() ? &outer : nullptr;
  }
  std::uint64_t end_direct_view(DynamicTransaction& transaction, bool bound) override {
    return static_cast<Own&>(transaction).inner().end_direct_view(bound);
  }
  void leave_direct_view(DynamicTransaction& transaction) noexcept override {
    static_cast<Own&>(transaction).inner().leave_direct_view();
  }

 private:
  using Own = DynamicTransactionOver<E>;
  [[gnu::always_inline]] Own& own() {
    // Both are looked up by the same thread slot.
    return transactions_.get([this](int) { return std::make_unique<Own>(engine_.transaction()); });
  }
  E engine_;
  Transactions<Own> transactions_;
};

template <class E>
std::unique_ptr<DynamicEngine::Implementation> make_over(pool::OpenPool& file, const Config& config,
                                                         const Recovery& recovery) {
  return std::make_unique<Over<E>>(file, config, recovery);
}

/// Calls f(entry, make) for each name of each instance of a list, in order.
template <class... Instances, class F>
void each_entry(engines<Instances...>, F&& f) {
  const auto names_of = [&]<class I>(I) {
    for (const InstanceName& n : I::names) f(entry_of<I>(n), &make_over<typename I::type>);
  };
  (names_of(Instances()), ...);
}

/// Registers the instances of a list for any_engine, in their order (register_engine).
template <class List>
void register_engines(List list) noexcept {
  each_entry(list, [](const EngineInfo& entry, DynamicEngine::Make make) {
    register_engine(entry, make);
  });
}

}  // namespace perdure::engine
