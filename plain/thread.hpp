// SPDX-License-Identifier: BSD-3-Clause
//
// A thread's block: which pool it is on, its transaction, and what has to be done when it ends or
// is run again. There are two kinds:
//   owned   perdure::PlainPool::atomically() runs a function by engine::run(). Where the attempt
//           can't go on, the thread jumps to run_attempt(), which throws the reason on to
//           engine::run(); that repeats the function, or throws to the caller.
//   own     a __transaction_atomic block outside of atomically(): it begins and commits a
//           transaction itself, and where it can't go on, the thread returns from
//           _ITM_beginTransaction once more (frame.hpp).
// A block inside another one is a part of it.
//
//   PLAIN-1 An attempt that ends without a commit leaves nothing: what it stored outside of the
//           pool is stored back, what it took from malloc and the exceptions that it made are
//           freed, and the engine rolls back the pool.
//   PLAIN-2 What a block frees outside of the pool is freed when it has committed, and not before.
//   PLAIN-3 No exception of the library passes through code that a compiler has instrumented: it
//           takes a barrier for a call that can't throw.
// Thread safety: all of it belongs to its thread.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "perdure/engine/dynamic_engine.hpp"
#include "plain/binding.hpp"
#include "plain/frame.hpp"
#include "plain/memory_undo.hpp"

extern "C" {
// What libstdc++ keeps of a thread's exceptions, by the Itanium ABI (exceptions.cpp).
// NOLINTBEGIN(bugprone-reserved-identifier)
struct CxaException;
struct CxaGlobals {
  CxaException* caught;  // the newest that has a handler
  unsigned uncaught;     // how many are in flight
};
CxaGlobals* __cxa_get_globals() noexcept;
// NOLINTEND(bugprone-reserved-identifier)
}

namespace perdure::plain {

/// The cold part of a thread's state.
struct Thread {
  std::shared_ptr<Binding> chosen;  ///< by use(); null: the only pool there is
  std::shared_ptr<Binding> only;    ///< that one, when there were `only_of` changes
  std::uint64_t only_of = 0;
  Binding* binding = nullptr;  ///< of the block, whose pool is open as long
  Status last;                 ///< why the last block was skipped; ok: it was not
  MemoryUndo undo;

  // An own block.
  Frame frame{};
  std::uint32_t properties = 0;
  bool update = true;  ///< false: its transaction is a view
  std::uint64_t runs = 0;

  // An owned block.
  Frame attempt{};  ///< run_attempt()'s
  std::exception_ptr failure;

  struct Call {
    void (*f)(void*);
    void* arg;
  };
  std::vector<Call> at_commit, at_rollback;

  // Exceptions that the attempt makes (exceptions.cpp).
  /// Memory that nobody had before the attempt: an object, or what one holds, which is of malloc.
  struct Fresh {
    void* object;
    Range range;
    bool held;
  };
  std::vector<Fresh> fresh;
  std::vector<void*> unthrown;   ///< objects that are being made, one in another's making
  std::vector<void*> in_flight;  ///< objects that were thrown, and are not caught yet
  const ::CxaGlobals* const exceptions = ::__cxa_get_globals();
  const void* caught_before = nullptr;  ///< the newest exception that had a handler at its begin
  int handlers_before = 0;              ///< and how many it had
  unsigned uncaught_before = 0;         ///< how many were in flight then

  /// Whether an attempt has left anything that its end has to see to.
  [[nodiscard]] bool has_work() const noexcept {
    return !undo.empty() || !at_commit.empty() || !at_rollback.empty() || !fresh.empty();
  }
};

/// How the thread's loads and stores are made, in one word: so it is stored at once.
struct alignas(8) Mode {
  bool direct;  ///< every load may be plain; so they are outside of blocks
  bool owned;
  bool view;  ///< the transaction is one
  bool unused = false;
  std::uint32_t depth;  ///< of blocks; 0 in an owned one before its first
};
static_assert(sizeof(Mode) == 8);
inline constexpr Mode outside{.direct = true, .owned = false, .view = false, .depth = 0};

/// The hot part: a few words of thread-local memory. Behind a commit's fence each store takes room
/// in the processor's store buffer, and the next block's loads wait when that is full: what begins
/// and ends a block stores as little as it can.
struct State {
  std::uintptr_t first = 0;              ///< of the pool that the block is on
  std::uint64_t bytes = 0;               ///< 0: outside of a block
  std::uint64_t objects = 0, limit = 0;  ///< its objects' range: objects(), data_bytes() or less
  engine::DynamicTransaction* transaction = nullptr;  ///< outside of a block: of an earlier one
  Mode mode = outside;
  Thread* thread = nullptr;
  bool thread_ends = false;

  [[nodiscard]] bool inside() const noexcept { return bytes != 0; }
  [[nodiscard]] bool in_pool(const void* at) const noexcept {
    return reinterpret_cast<std::uintptr_t>(at) - first < bytes;
  }
  /// Whether the n bytes lie among the pool's objects.
  [[nodiscard]] bool of_objects(const void* at, std::size_t n) const noexcept {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(at) - first;
    return offset >= objects && offset < limit && n <= limit - offset;
  }
};
extern constinit thread_local State state;

/// The calling thread's; made at the first call. Throws std::bad_alloc.
Thread& this_thread();

/// Ends the attempt because of this exception, or std::bad_alloc, error, LogFull or Conflict that
/// it holds: the block runs again, is skipped, or its caller gets the exception.
[[noreturn]] void leave(std::exception_ptr why) noexcept;
/// The same for an error of the program that a block makes.
[[noreturn]] void leave_invalid(const char* found, const char* expected, const char* advice = "");
/// Begins the block, whose transaction is a view, again as an update.
[[noreturn]] void leave_view() noexcept;
/// Notes the exceptions that there are at an attempt's begin.
void note_exceptions(Thread& thread) noexcept;
[[gnu::always_inline]] inline void begin_exceptions(Thread& thread) noexcept {
  if (thread.exceptions->caught != nullptr || thread.caught_before != nullptr ||
      thread.exceptions->uncaught != thread.uncaught_before)
    note_exceptions(thread);
}
/// Frees the exceptions of an attempt that is left, and what they hold.
void free_exceptions(Thread& thread) noexcept;
/// Forgets them: what has passed on is its receiver's.
inline void forget_exceptions(Thread& thread) noexcept {
  thread.fresh.clear();
  thread.in_flight.clear();
  thread.unthrown.clear();
}
/// Ends the process with a message: what is wrong can't be told in another way.
[[noreturn]] void die(const char* found, const char* advice) noexcept;

/// Runs a function as a transaction on the pool; in a block on the same pool, as a part of it.
/// Throws what it throws, and what engine::run throws.
void run(const std::shared_ptr<Binding>& binding, Durability durability, void (*body)(void* arg),
         void* arg);

/// Calls f, which may throw what leave() takes.
template <class F>
[[gnu::always_inline]] inline decltype(auto) guarded(F&& f) noexcept {
  std::exception_ptr failed;
  try {
    return f();
  } catch (...) {
    failed = std::current_exception();
  }
  leave(std::move(failed));
}

}  // namespace perdure::plain
