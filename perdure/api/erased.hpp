// SPDX-License-Identifier: BSD-3-Clause
//
// ErasedPool, ErasedTx: a pool that knows neither its engine (dynamic_engine.hpp) nor its root's
// type. perdure.h is built on it, and bindings of other languages can be.
//
// Thread safety and the meaning of the calls: as in Pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "perdure/api/pool.hpp"

namespace perdure {

/// A transaction in progress. Addresses lie in the pool's mapping; they are not checked here.
class ErasedTx {
 public:
  explicit ErasedTx(engine::DynamicEngine::Transaction& transaction) noexcept
      : tx_(transaction), read_only_(transaction.in_view()) {}
  void read_bytes(void* to, const void* from, std::size_t n) { tx_.read_bytes(to, from, n); }
  [[nodiscard]] std::uint64_t read_word(const std::uint64_t* from) {
    return tx_.read(*reinterpret_cast<const p<std::uint64_t>*>(from));
  }
  void write_bytes(void* to, const void* from, std::size_t n) {
    changing().write_bytes(to, from, n);
  }
  void write_word(std::uint64_t* to, std::uint64_t value) {
    changing().write(*reinterpret_cast<p<std::uint64_t>*>(to), value);
  }
  [[nodiscard]] std::byte* alloc(std::size_t n) { return changing().alloc(n); }
  void free(void* block) { changing().free(block); }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }

 private:
  using AnyTx = Tx<engine::DynamicEngine::Transaction>;
  AnyTx& changing() {
    if (__builtin_expect(read_only_, 0))
      throw error(failure(Code::read_only, "", "a change inside a view", "an update"));
    return tx_;
  }
  AnyTx tx_;
  const bool read_only_;
};

class ErasedPool {
 public:
  using Root = detail::RootType;
  static Result<std::unique_ptr<ErasedPool>> open(const std::string& path, const Options& options,
                                                  const Root& root) {
    try {
      auto opened = detail::open_pool(path, options, engine::registered(), root);
      if (!opened) return opened.status();
      opened->file->drop_unless_kept();
      std::unique_ptr<ErasedPool> pool(new ErasedPool(std::move(*opened)));
      pool->running_.file().keep();
      return pool;
    } catch (...) {
      return detail::opening_failed(path);
    }
  }

  using Body = void (*)(ErasedTx& tx, void* arg);
  /// Runs body as Pool::update and view run a lambda: possibly more than once. An exception from it
  /// rolls back and is rethrown. Returns what engine::run returns.
  std::uint64_t update(Durability durability, Body body, void* arg) {
    return run(true, durability, body, arg);
  }
  void view(Durability durability, Body body, void* arg) {
    const std::uint64_t seen = run(false, durability, body, arg);
    if (durability != Durability::async && seen != engine::joined)
      running_.wait_durable(seen).or_throw();
  }

  [[nodiscard]] Status wait(std::uint64_t id) { return running_.wait_durable(id); }
  [[nodiscard]] std::uint64_t durable_id() const noexcept { return running_.durable_now(); }
  [[nodiscard]] bool is_durable(std::uint64_t id) const noexcept {
    return running_.is_durable(id);
  }  ///< of an id that update() or view() has returned
  void when_durable(std::uint64_t id, std::function<void(Status)> f) {
    running_.when_durable(id, std::move(f));
  }
  [[nodiscard]] Status checkpoint() { return running_.checkpoint(); }
  [[nodiscard]] Status close() { return running_.close(); }
  [[nodiscard]] Stats stats() { return running_.engine->stats(); }
  [[nodiscard]] pool::OpenPool& file() noexcept { return running_.file(); }
  /// The instance's name: a null-terminated literal.
  [[nodiscard]] std::string_view engine_name() const noexcept { return name_; }

 private:
  explicit ErasedPool(detail::Opened opened)
      : name_(opened.config.instance), running_(std::move(opened)) {}
  std::uint64_t run(bool update, Durability durability, Body body, void* arg) {
    return engine::run(*running_.engine, update, durability,
                       [&](engine::DynamicEngine::Transaction& transaction) {
                         ErasedTx tx(transaction);
                         body(tx, arg);
                       });
  }
  const std::string_view name_;
  detail::Running<any_engine> running_;
};

}  // namespace perdure
