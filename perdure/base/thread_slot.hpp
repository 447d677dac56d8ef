// SPDX-License-Identifier: BSD-3-Clause
//
// Thread slots: a small dense number for the calling thread, for per-thread rows of counters, rings
// and transactions.
//
// A thread takes a number at its first call and gives it back when it ends; two live threads never
// share one. Thread safety: all calls may be made from any thread. The thread_local is constinit,
// and its guard is a second variable: a thread_local with a constructor costs an initialisation
// test at every access (measured: up to 8 times the access).
//
// A pool's own threads take no numbers from the program's. They have reserved numbers above those,
// the same ones in every pool. That works because such a thread works for one pool, and a table
// with an entry for each number belongs to one pool.
#pragma once

#include <cstdint>

#include "perdure/base/status.hpp"

namespace perdure::base {

/// The maximum number of the program's threads that use Perdure at once in one process.
inline constexpr int max_threads = 256;

/// The reserved numbers: of the engine's background thread, of the thread that runs the
/// continuations that wait for durability, of an engine's second background thread, and of the
/// threads that share one piece of work (log/team.hpp).
inline constexpr int background_slot = max_threads, completion_slot = max_threads + 1,
                     second_background_slot = max_threads + 2, team_slot = max_threads + 3;
inline constexpr int max_team = 8;
/// The number of entries of a table with an entry for each number.
inline constexpr int slot_count = team_slot + max_team;

namespace detail {
extern thread_local constinit int slot_of_this_thread;
int take_thread_slot();  // throws perdure::error (too_many_threads) when max_threads are alive
bool hold_free_slot(int slot) noexcept;
void let_go_of_slot(int slot) noexcept;
}  // namespace detail

/// The calling thread's number, 0 <= slot < max_threads, or the reserved number that it has at
/// present.
[[nodiscard]] inline int thread_slot() {
  const int slot = detail::slot_of_this_thread;
  return __builtin_expect(slot >= 0, 1) ? slot : detail::take_thread_slot();
}

/// Takes a number for the calling thread if it has none, or returns `too_many_threads`. Call it
/// before calls that can't fail but need a number, such as a medium's.
[[nodiscard]] Status ensure_thread_slot() noexcept;

/// Whether no thread has the number; a hint.
[[nodiscard]] bool is_free(int slot) noexcept;

/// Runs f() if no thread has the number `slot`, and returns whether it did. No thread takes the
/// number meanwhile; one that takes it later sees what f() stored. f throws nothing and is short.
template <class F>
bool while_free(int slot, F&& f) noexcept {
  if (!detail::hold_free_slot(slot)) return false;
  f();
  detail::let_go_of_slot(slot);
  return true;
}

/// While it lives, the calling thread has the reserved number `slot`; afterwards, the one it had
/// before. At any time at most one thread of a pool may have a reserved number, and it works for
/// that pool alone.
class ReservedSlot {
 public:
  explicit ReservedSlot(int slot) noexcept : before_(detail::slot_of_this_thread) {
    detail::slot_of_this_thread = slot;
  }
  ~ReservedSlot();
  ReservedSlot(const ReservedSlot&) = delete;
  ReservedSlot& operator=(const ReservedSlot&) = delete;

 private:
  const int before_;
};

/// Gives the calling thread's number back before the thread ends, if it has taken one: for a thread
/// of the library that has run the program's code. Precondition: the thread is in no transaction.
void give_back_thread_slot() noexcept;

/// Counts how many times this process is a fork of the one that loaded the library (0, 1, ...). A
/// handle remembers the count, so that a forked child's copy of the handle is refused.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

/// The process that made the object of which this is a member. A forked child's copy of the object
/// belongs to the parent, and the child must not use what the object stands for. A copy or move of
/// the object keeps the owner.
class Owner {
 public:
  [[nodiscard]] bool is_parent() const noexcept { return generation_ != fork_generation(); }

 private:
  std::uint32_t generation_ = fork_generation();
};

}  // namespace perdure::base
