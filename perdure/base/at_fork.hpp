// SPDX-License-Identifier: BSD-3-Clause
//
// Handlers that keep the library's process-wide tables usable in a forked child.
//
// fork() copies only the calling thread. A mutex that another thread held stays locked in the child
// for ever, and the data that it guards may be half changed. There are two remedies, for a function
// `table` that returns a reference to one object with a member `mutex`, the same object at each
// call:
//   hold_over_fork   is for what the child needs: fork() waits for the mutex, so the child finds
//                    the object whole. The mutex is held only briefly. Its holder takes no second
//                    such mutex and calls none of the program's code.
//   anew_in_child    is for what the child does not need: the child finds a new object, and fork()
//                    waits for nothing.
// A namespace-scope object's initialiser calls them once, when the library is loaded. The call also
// constructs the table: if a static local were still being initialised by another thread at fork(),
// the child would wait for it for ever. The table is never destroyed, because a late thread may
// still fork.
#pragma once

#include <pthread.h>

#include <memory>

namespace perdure::base {

/// Returns 0, or an errno value; after an error, a forked child may not use the table.
template <auto table>
int hold_over_fork() noexcept {
  table();
  constexpr auto unlock = [] { table().mutex.unlock(); };
  return ::pthread_atfork([] { table().mutex.lock(); }, unlock, unlock);
}

/// Returns the same as hold_over_fork(). What the object owned in the parent is neither touched nor
/// freed in the child.
template <auto table>
int anew_in_child() noexcept {
  table();
  return ::pthread_atfork(nullptr, nullptr, [] { std::construct_at(std::addressof(table())); });
}

}  // namespace perdure::base
