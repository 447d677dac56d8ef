// SPDX-License-Identifier: BSD-3-Clause
//
// Plain code on a pool: ordinary structs with ordinary pointers, changed in blocks by ordinary
// statements. The compiler puts the calls of the library in (GCC with -fgnu-tm, which linking
// perdure::plain switches on); each block is a durable transaction, on any engine.
//
//     struct Node { Node* next; std::uint64_t value; };
//     struct Stack {
//       static constexpr const char* layout_id = "example::Stack/1";
//       Node* top;
//     };
//     void push(Stack& s, std::uint64_t value) { s.top = new Node{s.top, value}; }
//
//     perdure::PlainPool<Stack> pool("stack.perdure");
//     pool.atomically([](Stack& s) { push(s, 7); });   // durable when it returns
//     pool.use();
//     __transaction_atomic { push(pool.root(), 8); }   // so is this
//
// In a block, malloc and new take memory of the pool, and free and delete give it back. What the
// block stores elsewhere (locals, globals, memory of malloc) is stored back if it rolls back, and
// is not isolated from other threads. A block calls functions whose text is in the same file, or
// that are declared transaction_safe; anything else is an error of the compiler. So is what GCC 12
// compiles wrongly, such as bit-fields (plain/check).
// docs/plain.md has all rules. Pointers in a pool stay right when it is opened again; one that
// leads outside of the pool does not.
// Thread safety: any thread may run blocks; use() is the calling thread's. A block must not wait
// for another thread's block.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "perdure/api/pool.hpp"
#include "plain/safe.h"

#ifdef __clang__
/// The pass takes this call out. Where it has not run, the program does not link.
extern "C" __attribute__((nomerge)) void (
    *perdure_plain_instrumented(void (*body)(void* arg)) noexcept)(void* arg);
#define PERDURE_PLAIN_BODY(BODY) perdure_plain_instrumented(&(BODY))
#elif defined(__cpp_transactional_memory)
#define PERDURE_PLAIN_BODY(BODY) (&(BODY))
#else
// clang-format off
#error "perdure/plain: found no -fgnu-tm, expected GCC with it: link perdure::plain"
// clang-format on
#endif

namespace perdure {

namespace plain {
class Binding;

/// Why the calling thread's last __transaction_atomic block with a __transaction_cancel was skipped
/// although it did not cancel; ok: it was not.
[[nodiscard]] Status last_failure();
/// What a PlainPool does.
std::shared_ptr<Binding> bind(PoolBase& pool, Durability durability);
/// A pool that no __transaction_atomic block finds.
std::shared_ptr<Binding> make_binding(PoolBase& pool);
/// What a PlainPool does.
void use(std::shared_ptr<Binding> binding);
/// What a PlainPool does.
void end(const std::shared_ptr<Binding>& binding) noexcept;
/// What a PlainPool does.
void run(const std::shared_ptr<Binding>& binding, Durability durability, void (*body)(void* arg),
         void* arg);
/// What atomically() runs: the function, and its argument.
template <class Root, class F>
struct Call {
  F& f;
  Root& root;
  static void run(void* arg) {
    const Call& call = *static_cast<const Call*>(arg);
    F& in_block = call.f;
    Root& at = call.root;
#ifdef __clang__
    in_block(at);
#else
    __transaction_atomic { in_block(at); }
#endif
  }
};
/// What a PlainPool does.
template <class Root, class F>
void run(const std::shared_ptr<Binding>& binding, Durability durability, Root& root, F& f) {
  Call<Root, F> call{f, root};
  plain::run(binding, durability, PERDURE_PLAIN_BODY((Call<Root, F>::run)), &call);
}
/// Where a pool's root object lies.
[[nodiscard]] std::byte* root_address(PoolBase& pool);
/// A pool's root object.
template <class Root>
[[nodiscard]] Root& root_of(Pool<Root>& pool) {
  return *reinterpret_cast<Root*>(root_address(pool));
}
}  // namespace plain

/// Runs f(root) as a transaction on a pool that is no PlainPool, which is faster. Throws as
/// PlainPool::atomically().
template <class Root, class F>
void atomically(Pool<Root>& pool, F&& f, Durability durability = Durability::durable) {
  plain::run(plain::make_binding(pool), durability, plain::root_of(pool), f);
}

/// A pool whose root is a plain struct, for plain code. `Root` states its layout by a `layout_id`.
template <class Root>
class PlainPool {
  static_assert(std::is_trivially_copyable_v<Root>,
                "perdure::PlainPool: a root is a plain struct, with a layout_id");

 public:
  /// Opens or creates the pool, whose root is zeros then. Throws as Pool::open(), and
  /// error(read_only) for a pool that is opened for reading.
  explicit PlainPool(const std::string& path, const Options& options = {})
      : PlainPool(Pool<Root>::open(path, options), options.durability) {}
  /// Takes over an open pool. `durability`: of its blocks.
  explicit PlainPool(Pool<Root> pool, Durability durability = Durability::durable)
      : pool_(std::move(pool)), durability_(durability), binding_(plain::bind(pool_, durability)) {}
  PlainPool(const PlainPool&) = delete;
  PlainPool& operator=(const PlainPool&) = delete;
  /// Closes the pool, as Pool does. No thread may be in a block on it.
  ~PlainPool() { plain::end(binding_); }

  /// The root object. Outside of a block, read it only while no thread changes it, and with an
  /// engine that stores in place (`shadow`, `undo`, REWIND's).
  [[nodiscard]] Root& root() { return plain::root_of(pool_); }
  /// From here on the calling thread's __transaction_atomic blocks are on this pool. Where one pool
  /// is open, they are on it without that. Throws std::bad_alloc.
  void use() { plain::use(binding_); }
  /// Runs f(root) as a transaction. Throws what f throws, and perdure::error, after which nothing
  /// has changed: as Pool::update(). In an update() of the same pool it is a part of that.
  template <class F>
  void atomically(F&& f) {
    plain::run(binding_, durability_, root(), f);
  }
  /// The pool, for everything else: stats, checkpoints, backups, check().
  [[nodiscard]] Pool<Root>& pool() noexcept { return pool_; }
  /// As Pool::close().
  CloseReport close() {
    plain::end(binding_);
    return pool_.close();
  }

 private:
  Pool<Root> pool_;
  const Durability durability_;
  std::shared_ptr<plain::Binding> binding_;
};

}  // namespace perdure
