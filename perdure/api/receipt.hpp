// SPDX-License-Identifier: BSD-3-Clause
//
// Receipt: what update() returns: the lambda's value, and when the transaction is durable, or, in a
// replicated pool, in the log (Ack).
//
// A receipt covers everything its transaction read (LAW-2). It must not outlive its Pool.
// Thread safety: a value; any thread may call wait().
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "perdure/base/status.hpp"
#include "perdure/replication/options.hpp"

namespace perdure {

namespace detail {

/// The pool, as a receipt uses it.
class DurabilitySource {
 public:
  virtual ~DurabilitySource() = default;
  /// Returns when transaction `id` is durable, or can't become so.
  virtual Status wait_durable(std::uint64_t id) = 0;
  /// Whether transaction `id`, whose update() has returned, is durable now.
  [[nodiscard]] virtual bool is_durable(std::uint64_t id) const noexcept = 0;
  /// Calls f(status) once, when id is durable or can't become so: possibly at once, possibly on the
  /// pool's completion thread.
  virtual void when_durable(std::uint64_t id, std::function<void(Status)> f) = 0;
  /// The same of levels above `local`.
  virtual Status wait_acknowledged(std::uint64_t id, Ack level) = 0;
  [[nodiscard]] virtual bool is_acknowledged(std::uint64_t id, Ack level) const noexcept = 0;
  virtual void when_acknowledged(std::uint64_t id, Ack level, std::function<void(Status)> f) = 0;
};

}  // namespace detail

/// What all receipts have: the transaction's number and the ways to learn that it is durable. Any
/// thread.
class ReceiptBase {
 public:
  /// No source: the receipt of an update() nested in another one, whose receipt covers it.
  ReceiptBase(detail::DurabilitySource* source, std::uint64_t id) noexcept
      : source_(source), id_(id) {}
  /// The transaction's id: later commits have higher ones. An update that changed nothing has the
  /// id of the newest transaction that it may have read. 0 when nested. Ids of `dudetm/htm` and
  /// `volatile/htm` are commit timestamps: 64 bits wide, with gaps, and valid for one session; the
  /// next session's may be lower.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// Whether the transaction is durable now. Never waits. False for a nested update()'s receipt.
  [[nodiscard]] bool durable() const noexcept {
    return source_ != nullptr && source_->is_durable(id_);
  }
  /// Whether the transaction has reached the receipt's level: durable() unless at() has said
  /// otherwise. Never waits.
  [[nodiscard]] bool reached() const noexcept {
    if (level_ == Ack::local) return durable();
    return source_ != nullptr && source_->is_acknowledged(id_, level_);
  }
  /// The level that reached(), wait(), then() and co_await are about.
  [[nodiscard]] Ack level() const noexcept { return level_; }
  /// Returns when the transaction has reached the receipt's level: when it is durable, unless at()
  /// has said otherwise. Throws error(poisoned) when the medium failed before, error(invalid) for a
  /// nested update's receipt, and what wait(Ack) throws.
  void wait() const { try_wait().or_throw(); }
  /// Returns when the transaction has reached `level`. Throws error(in_doubt) where that takes
  /// longer than ReplicateOptions::patience: it may be reached later. Throws error(deposed) where
  /// the log has given another copy the lead before it had this transaction, which it never gets
  /// then; error(invalid) in a pool that is not replicated, and for standby(n) with another n than
  /// 1 to most_standbys; error(unsupported) for `quorum` where the log does not say that it has
  /// three replicas on disk, and for standby(n) where it does not carry what standbys say; and what
  /// wait() throws.
  void wait(Ack level) const { try_wait(level).or_throw(); }
  /// wait() with the failure as a Status.
  [[nodiscard]] Status try_wait() const { return try_wait(level_); }
  /// wait(level) with the failure as a Status.
  [[nodiscard]] Status try_wait(Ack level) const {
    if (source_ == nullptr) return nested();
    return level == Ack::local ? source_->wait_durable(id_)
                               : source_->wait_acknowledged(id_, level);
  }
  /// What update(level, f) does with its receipt: waits, and makes it one of that level. Nothing is
  /// done with the receipt of a nested update.
  void reach(Ack level) {
    level_ = level;
    if (source_ != nullptr) wait();
  }
  /// Makes executor(g) run g() when the transaction has reached the receipt's level, or can't; g
  /// calls f(Status). The executor may be called on a thread of the pool's, which blocks the
  /// program's signals. Throws error(too_many_threads) or std::bad_alloc; f is not called then.
  template <class Executor, class F>
  void then(Executor executor, F f) const {
    when([executor = std::move(executor), f = std::move(f)](Status status) mutable {
      executor([f = std::move(f), status = std::move(status)]() mutable { f(std::move(status)); });
    });
  }

 protected:
  /// then() without an executor: f runs on this thread at once, or on the pool's completion thread.
  void when(std::function<void(Status)> f) const {
    if (source_ == nullptr) return f(nested());
    if (level_ == Ack::local) return source_->when_durable(id_, std::move(f));
    source_->when_acknowledged(id_, level_, std::move(f));
  }
  /// What a nested update()'s receipt answers.
  [[nodiscard]] static Status nested() {
    return failure(Code::invalid, "",
                   "a wait for the receipt of an update() nested in another transaction",
                   "the outer update()'s receipt");
  }
  /// The pool; null for a nested update()'s receipt.
  detail::DurabilitySource* source_;
  /// The transaction's id.
  std::uint64_t id_;
  /// What reached(), wait(), then() and co_await are about.
  Ack level_ = Ack::local;
};

/// The receipt of an update() whose lambda returned a T. A coroutine may co_await it: it goes on,
/// with the value, on the pool's completion thread when the transaction is durable, or has reached
/// the level that at() names: `co_await std::move(receipt).at(perdure::shipped)`. Must not
/// outlive its Pool. Thread safety: a value; see ReceiptBase.
template <class T>
class Receipt : public ReceiptBase {
 public:
  /// Made by update().
  Receipt(detail::DurabilitySource* source, std::uint64_t id, T value)
      : ReceiptBase(source, id), value_(std::move(value)) {}
  /// Returns what the lambda returned. It is known at once, durable or not.
  [[nodiscard]] const T& value() const& noexcept { return value_; }
  /// The same receipt of another level, for then() and co_await.
  [[nodiscard]] Receipt at(Ack level) && noexcept {
    level_ = level;
    return std::move(*this);
  }
  /// What the lambda returned, taken out of a receipt that is not needed any more.
  [[nodiscard]] T&& value() && noexcept { return std::move(value_); }

  // co_await receipt: resumes with the value, when the level is reached; throws as wait(). The
  // coroutine continues on the pool's completion thread.
  /// For co_await: whether there is nothing to wait for.
  [[nodiscard]] bool await_ready() const noexcept { return reached(); }
  /// For co_await: has the coroutine resumed when the transaction has reached the level, or can't.
  void await_suspend(std::coroutine_handle<> h) {
    when([this, h](Status s) {
      status_ = std::move(s);
      h.resume();
    });
  }
  /// For co_await: the lambda's value; throws as wait().
  T await_resume() {
    status_.or_throw();
    return std::move(value_);
  }

 private:
  T value_;
  Status status_;
};

/// The receipt of an update() whose lambda returned nothing.
template <>
class Receipt<void> : public ReceiptBase {
 public:
  using ReceiptBase::ReceiptBase;
  /// The same receipt of another level, for then() and co_await.
  [[nodiscard]] Receipt at(Ack level) && noexcept {
    level_ = level;
    return std::move(*this);
  }
  /// Nothing, so that generic code need not ask.
  void value() const noexcept {}
  /// For co_await: whether there is nothing to wait for.
  [[nodiscard]] bool await_ready() const noexcept { return reached(); }
  /// For co_await: has the coroutine resumed when the transaction has reached the level, or can't.
  void await_suspend(std::coroutine_handle<> h) {
    when([this, h](Status s) {
      status_ = std::move(s);
      h.resume();
    });
  }
  /// For co_await: throws as wait().
  void await_resume() { status_.or_throw(); }

 private:
  Status status_;
};

}  // namespace perdure
