// SPDX-License-Identifier: BSD-3-Clause
//
// Writer: the cursor in registers of an update that is alone. Invariant: SHADOW-3.
// Thread safety: a Writer belongs to its transaction's thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/engine/view.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::shadow {

/// What an update's lambda writes through (api/tx.hpp). While no other thread writes, it has the
/// record's cursor and what else a store needs in an object of its own, which the compiler keeps in
/// registers: the cache misses of a store overlap with the next ones' only as far as the
/// processor's queues reach, so instructions and stores count. SHADOW-3: nothing else adds to the
/// record meanwhile. The transaction has the cursor again before anything else is asked of it, and
/// when the lambda ends, by an exception too.
///
/// An update within an update has a Writer of its own, on the same record, and the outer one's
/// cursor would then be stale. So the second Writer ends the transaction as a conflict does, and
/// from then on this thread's transactions on the pool keep their cursors.
template <class Transaction>
class Writer {
 public:
  explicit Writer(Transaction& transaction) : transaction_(transaction) {
    if (!transaction.tm_.alone()) return;
    // mutant: writer-within-a-writer
    if (__builtin_expect(transaction.lends_, 0)) transaction.run_without_writer();
    // A transaction that saves lines for a snapshot does it in write().
    // mutant: snapshot-writer-saves
    if (__builtin_expect(transaction.keeps_cursor_ || transaction.saver_.saving(), 0)) return;
    transaction.lends_ = true;
    marks_ = transaction.mark_.words();
    take();
  }
  ~Writer() {
    if (end_ == nullptr) return;
    // mutant: writer-gives-back
    give_back();
    transaction_.lends_ = false;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  [[gnu::always_inline]] void write(std::uint64_t* a, std::uint64_t v) {
    if (__builtin_expect(!cursor_.fits(end_), 0)) {
      if (end_ == nullptr) return change([&] { transaction_.write(a, v); });
      return write_in_transaction(a, v);
    }
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(a) - view_);
    cursor_.add(offset, v, *a);
    Marks::mark_alone(marks_, offset);
    tm::store_word(a, v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    with_cursor_back([&] { transaction_.write_words(a, src, n); });
  }
  std::byte* alloc(std::uint64_t bytes) {
    return with_cursor_back([&] { return transaction_.alloc(bytes); });
  }
  void free(void* p) {
    with_cursor_back([&] { transaction_.free(p); }, [&] { transaction_.refusal().keep_of_free(); });
  }
  void keep_refusal() noexcept { transaction_.refusal().keep(); }
  void emit(std::string_view topic, std::string_view bytes, std::uint16_t schema) {
    with_cursor_back([&] { transaction_.emit(topic, bytes, schema); });
  }

 private:
  [[gnu::noinline, gnu::cold]] void write_in_transaction(std::uint64_t* a, std::uint64_t v) {
    with_cursor_back([&] { transaction_.write(a, v); });
  }
  void take() noexcept {
    cursor_ = transaction_.record_.cursor();
    end_ = transaction_.record_.end();
    view_ = transaction_.view_;
  }
  void give_back() noexcept { transaction_.record_.cursor(cursor_); }
  // REFUSED-1. Nothing is done where nothing is thrown.
  template <class F, class Keep>
  [[gnu::always_inline]] decltype(auto) change(F&& f, Keep&& keep) {
    try {
      return f();
    } catch (...) {
      keep();
      throw;
    }
  }
  template <class F>
  [[gnu::always_inline]] decltype(auto) change(F&& f) {
    return change(f, [this] { keep_refusal(); });
  }
  // Calls f() while the transaction has its cursor.
  template <class F, class Keep>
  decltype(auto) with_cursor_back(F&& f, Keep&& keep) {
    return change(
        [&]() -> decltype(auto) {
          if (end_ == nullptr) return f();
          give_back();
          struct Again {
            Writer& writer;
            ~Again() { writer.take(); }
          } const again{*this};
          return f();
        },
        keep);
  }
  template <class F>
  decltype(auto) with_cursor_back(F&& f) {
    return with_cursor_back(f, [this] { keep_refusal(); });
  }

  Transaction& transaction_;
  log::RecordCursor cursor_;
  const std::uint64_t* end_ = nullptr;  // null: the transaction keeps its cursor
  const std::byte* view_ = nullptr;
  std::uint64_t* marks_ = nullptr;
};

}  // namespace perdure::engine::shadow
