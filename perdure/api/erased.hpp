// SPDX-License-Identifier: BSD-3-Clause
//
// ErasedPool, ErasedTx: a pool whose engine is chosen at run time among all registered ones, behind virtual calls. perdure.h is made of
// it; so may be bindings of other languages. An access costs an indirect call more than Tx (about 1 ns): C++ programs use Pool.
//
// Compiled once an instance, in erased.cpp. Thread safety and what the calls mean: as Pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "perdure/api/open.hpp"
#include "perdure/api/options.hpp"
#include "perdure/base/status.hpp"
#include "perdure/pool/pool_file.hpp"

namespace perdure {

/// A transaction in progress. Addresses lie in the view; they are not checked here.
class ErasedTx {
 public:
  ErasedTx() = default;
  ErasedTx(const ErasedTx&) = delete;
  ErasedTx& operator=(const ErasedTx&) = delete;
  virtual void read_bytes(void* to, const void* from, std::size_t n) = 0;
  virtual void write_bytes(void* to, const void* from, std::size_t n) = 0;
  [[nodiscard]] virtual std::uint64_t read_word(const std::uint64_t* from) = 0;
  virtual void write_word(std::uint64_t* to, std::uint64_t value) = 0;
  [[nodiscard]] virtual std::byte* alloc(std::size_t n) = 0;
  virtual void free(void* block) = 0;
  [[nodiscard]] virtual bool read_only() const noexcept = 0;

 protected:
  ~ErasedTx() = default;  // lives on the stack of the call that made it
};

class ErasedPool {
 public:
  /// What the caller says of the root object. `any_layout`: an existing pool is opened whatever its root type is.
  struct Root {
    std::string layout;
    std::uint64_t bytes = 0;
    bool any_layout = false;
  };
  static Result<std::unique_ptr<ErasedPool>> open(const std::string& path, const Options& options, const Root& root);
  /// The name of the n-th registered instance; empty past the last.
  [[nodiscard]] static std::string_view instance(std::size_t n) noexcept;

  ErasedPool() = default;
  ErasedPool(const ErasedPool&) = delete;
  ErasedPool& operator=(const ErasedPool&) = delete;
  virtual ~ErasedPool() = default;  ///< without close(): the next opening recovers

  using Body = void (*)(ErasedTx& tx, void* arg);
  /// Runs body as Pool::update and view run a lambda: maybe more than once; what it throws rolls back and passes. Returns what
  /// engine::run does.
  virtual std::uint64_t update(Durability durability, Body body, void* arg) = 0;
  virtual void view(Durability durability, Body body, void* arg) = 0;

  [[nodiscard]] virtual Status wait(std::uint64_t id) = 0;
  [[nodiscard]] virtual std::uint64_t durable_id() const noexcept = 0;
  [[nodiscard]] virtual bool is_durable(std::uint64_t id) const noexcept = 0;  ///< an id that update() or view() has returned
  virtual void when_durable(std::uint64_t id, std::function<void(Status)> f) = 0;
  [[nodiscard]] virtual Status checkpoint() = 0;
  [[nodiscard]] virtual Status close() = 0;
  [[nodiscard]] virtual Stats stats() = 0;
  [[nodiscard]] virtual pool::PoolFile& file() noexcept = 0;
  [[nodiscard]] virtual std::string_view engine_name() const noexcept = 0;  ///< the instance's: a terminated literal
};

}  // namespace perdure
