// SPDX-License-Identifier: BSD-3-Clause
//
// any_engine, and what a program sees of an engine that is chosen when a pool is opened: the
// transaction behind virtual calls that perdure::tx and perdure::rtx are made of, and the calls
// that run one. A program that opens pools compiles this header and no engine.
// dynamic_engine.hpp has the rest.
// Thread safety: a transaction belongs to its thread; a runner may be called by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "perdure/engine/durability.hpp"
#include "perdure/engine/instance.hpp"

namespace perdure::engine {

struct EngineInfo;
class DynamicEngine;

/// The reads of a transaction, behind virtual calls.
class DynamicReads {
 public:
  DynamicReads(const DynamicReads&) = delete;
  DynamicReads& operator=(const DynamicReads&) = delete;
  /// Whether loads may read the pool's memory themselves. It does not change while a lambda runs.
  [[nodiscard]] bool direct() const noexcept { return direct_; }
  /// Reads a word of the pool.
  [[nodiscard]] virtual std::uint64_t read(const std::uint64_t* a) = 0;
  /// Reads n words of the pool.
  virtual void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) = 0;
  /// As ReadTx::expect.
  virtual void expect(const void*, std::uint64_t) {}

 protected:
  DynamicReads() = default;
  ~DynamicReads() = default;
  /// What direct() returns. Whatever begins a transaction, or a view of it, sets it.
  bool direct_ = false;
};

/// A transaction in progress, behind virtual calls. The concept Engine (engine.hpp) says what the
/// calls mean.
class DynamicTransaction : public DynamicReads {
 public:
  /// Whether it is a view.
  [[nodiscard]] virtual bool in_view() const noexcept = 0;
  /// Writes a word of the pool.
  virtual void write(std::uint64_t* a, std::uint64_t v) = 0;
  /// Writes n words of the pool.
  virtual void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) = 0;
  /// As Tx::alloc.
  virtual std::byte* alloc(std::uint64_t bytes) = 0;
  /// As Tx::free.
  virtual void free(void* p) = 0;
  /// As Tx::keep_refusal.
  virtual void keep_refusal() noexcept = 0;
  /// As Tx::emit.
  virtual void emit(std::string_view topic, std::string_view bytes, std::uint16_t schema) = 0;

 protected:
  DynamicTransaction() = default;
  ~DynamicTransaction() = default;
};

/// Runs transactions of an engine that was chosen at opening. An update makes one virtual call to
/// begin, commit and, where it must, repeat its body. A view whose reads are plain makes two calls,
/// and its body stays in its caller, where the compiler can inline it.
class DynamicRunner {
 public:
  /// A transaction's body; `arg` is its caller's.
  using Body = void (*)(DynamicTransaction& transaction, void* arg);
  DynamicRunner() = default;
  DynamicRunner(const DynamicRunner&) = delete;
  DynamicRunner& operator=(const DynamicRunner&) = delete;

  /// As engine::run(): runs the body until it commits, and returns the id that bounds it; `joined`
  /// when nested.
  virtual std::uint64_t run(bool update, Durability durability, Body body, void* arg) = 0;
  /// Begins a view whose reads are plain, and returns its transaction. Null: it has to be run().
  [[nodiscard]] virtual DynamicTransaction* begin_direct_view() = 0;
  /// Ends such a view. Returns the id that bounds what it saw if `bound` is set, otherwise 0.
  virtual std::uint64_t end_direct_view(DynamicTransaction& transaction, bool bound) = 0;
  /// Ends such a view whose body has thrown.
  virtual void leave_direct_view(DynamicTransaction& transaction) noexcept = 0;

 protected:
  ~DynamicRunner() = default;
};

}  // namespace perdure::engine

namespace perdure {

/// The engine is chosen when the pool is opened, among all instances that are registered: those of
/// the product, and what the program has registered besides (engine::register_engines).
struct any_engine {
  /// The engine: one behind virtual calls.
  using type = engine::DynamicEngine;
  /// All instances that are registered now.
  static std::span<const engine::EngineInfo> entries();
};

/// What Pool<Root> is opened with unless told: one engine behind virtual calls, so that a
/// transaction is compiled once, whichever engine the pool has.
using default_engines = engines<any_engine>;

}  // namespace perdure
