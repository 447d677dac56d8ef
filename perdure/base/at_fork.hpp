// SPDX-License-Identifier: BSD-3-Clause
//
// What a process has one of, in a form that a forked child can go on with.
//
// fork() copies the calling thread alone. A mutex that another thread held stays locked in the
// child for ever, and what it guards may be half changed. Two remedies, for a function `table` that
// returns a reference to an object with a member `mutex`, the same at each call:
//   hold_over_fork   for what the child needs: fork() waits for the mutex, so the child finds the
//                    object whole. The mutex is held for short times, and while it is held neither
//                    another one of these is taken nor the program's code called.
//   anew_in_child    for what the child does not need: it finds a new object. Nothing is waited
//                    for.
// Both are called when the library is loaded, once, by a namespace-scope object's initialiser. That
// makes the table, too: a child would wait for ever for a static local that another thread was
// initialising when it was forked. The table is never destroyed: a late thread may still fork.
#pragma once

#include <pthread.h>

#include <memory>

namespace perdure::base {

/// Returns 0, or the errno: then a forked child is not provided for.
template <auto table>
int hold_over_fork() noexcept {
  table();
  constexpr auto unlock = [] { table().mutex.unlock(); };
  return ::pthread_atfork([] { table().mutex.lock(); }, unlock, unlock);
}

/// Returns as hold_over_fork(). What the object held in the parent is never touched, and not given
/// back.
template <auto table>
int anew_in_child() noexcept {
  table();
  return ::pthread_atfork(nullptr, nullptr, [] { std::construct_at(std::addressof(table())); });
}

}  // namespace perdure::base
