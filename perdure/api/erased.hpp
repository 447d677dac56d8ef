// SPDX-License-Identifier: BSD-3-Clause
//
// ErasedPool, ErasedTx: a pool that does not know its root's type. perdure.h is built on it, and
// bindings of other languages can be.
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

#include "perdure/api/layout.hpp"
#include "perdure/api/named_tx.hpp"
#include "perdure/api/pool_base.hpp"
#include "perdure/engine/snapshots.hpp"

namespace perdure {

/// A transaction in progress, or a read of a snapshot. Addresses lie in the pool's mapping; they
/// are not checked here.
class ErasedTx {
 public:
  explicit ErasedTx(engine::DynamicTransaction& transaction) noexcept
      : reads_(transaction), update_(transaction.in_view() ? nullptr : &transaction) {}
  explicit ErasedTx(engine::OpenSnapshot& snapshot) noexcept : reads_(snapshot) {}
  void read_bytes(void* to, const void* from, std::size_t n) { reads_.read_bytes(to, from, n); }
  [[nodiscard]] std::uint64_t read_word(const std::uint64_t* from) {
    return reads_.read(*reinterpret_cast<const p<std::uint64_t>*>(from));
  }
  void write_bytes(void* to, const void* from, std::size_t n) {
    changing().write_bytes(to, from, n);
  }
  void write_word(std::uint64_t* to, std::uint64_t value) {
    changing().write(*reinterpret_cast<p<std::uint64_t>*>(to), value);
  }
  [[nodiscard]] std::byte* alloc(std::size_t n) { return changing().alloc(n); }
  void free(void* block) { changing().free(block); }
  void emit(std::string_view topic, std::string_view bytes, std::uint16_t schema) {
    changing().emit(topic, bytes, schema);
  }
  [[nodiscard]] bool read_only() const noexcept { return update_ == nullptr; }

 private:
  tx changing() {
    if (__builtin_expect(read_only(), 0))
      throw error(failure(Code::read_only, "", "a change inside a view", "an update"));
    return tx(*update_);
  }
  rtx reads_;
  engine::DynamicTransaction* const update_ = nullptr;
};

/// A pool whose root is a number of bytes with a layout text. Its calls return a Status where
/// Pool's throw, and leave it to the caller to call none of them inside a transaction.
class ErasedPool : private PoolBase {
 public:
  using Root = detail::RootType;
  static Result<std::unique_ptr<ErasedPool>> open(const std::string& path, const Options& options,
                                                  const Root& root);

  using Body = void (*)(ErasedTx& tx, void* arg);
  /// Runs body as Pool::update and view run a lambda: possibly more than once. An exception from it
  /// rolls back and is rethrown. Returns what engine::run returns.
  std::uint64_t update(Durability durability, Body body, void* arg) {
    return run(true, durability, body, arg);
  }
  void view(Durability durability, Body body, void* arg);

  [[nodiscard]] Status wait(std::uint64_t id) { return running_->wait_durable(id); }
  [[nodiscard]] Status wait(std::uint64_t id, Ack level) {
    return level == Ack::local ? wait(id) : running_->wait_acknowledged(id, level);
  }
  [[nodiscard]] std::uint64_t durable_id() const noexcept { return running_->durable_now(); }
  [[nodiscard]] bool is_durable(std::uint64_t id) const noexcept {
    return running_->is_durable(id);
  }  ///< of an id that update() or view() has returned
  void when_durable(std::uint64_t id, std::function<void(Status)> f) {
    running_->when_durable(id, std::move(f));
  }
  void when(std::uint64_t id, Ack level, std::function<void(Status)> f) {
    if (level == Ack::local) return when_durable(id, std::move(f));
    running_->when_acknowledged(id, level, std::move(f));
  }
  [[nodiscard]] Status checkpoint() { return running_->checkpoint(); }
  [[nodiscard]] Result<Trimmed> trim(std::uint64_t max_bytes) { return running_->trim(max_bytes); }
  /// Snapshots that are open expire, and the call returns when no thread reads one.
  [[nodiscard]] Status close();
  /// As Pool::snapshot().
  [[nodiscard]] Result<std::shared_ptr<engine::OpenSnapshot>> snapshot(Durability durability);
  [[nodiscard]] Stats stats() { return running_->stats(); }
  /// What runs its transactions.
  [[nodiscard]] engine::DynamicRunner& runner() noexcept { return *runner_; }
  /// The open file; the instance's name, a null-terminated literal.
  using PoolBase::back_up, PoolBase::file, PoolBase::engine_name, PoolBase::refresh,
      PoolBase::replication, PoolBase::wait_for;

 private:
  ErasedPool() = default;
  std::uint64_t run(bool update, Durability durability, Body body, void* arg);
};

}  // namespace perdure
