// SPDX-License-Identifier: BSD-3-Clause
//
// A team runs the parts of one piece of work, each in its own thread where one is available,
// otherwise in the caller's thread, which has part 0.
//
// Thread safety: a plain function; it starts and ends its own threads, so the caller sees what each
// part did when it returns.
#pragma once

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "perdure/base/signals.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::log {

/// Calls part(0) to part(parts - 1) concurrently, with at most base::max_team threads; the caller
/// runs the parts beyond those in turn. A pool has one team at a time. The caller has a thread
/// slot; each other thread has a reserved one. Throws what a part threw, after all have ended.
template <class F>
void in_team(unsigned parts, F&& part) {
  if (parts == 1) return part(0);
  std::vector<std::exception_ptr> failed(parts);
  const auto try_part = [&](unsigned me) noexcept {
    try {
      part(me);
    } catch (...) {
      failed[me] = std::current_exception();
    }
  };
  const auto work = [&](unsigned me) noexcept {
    const base::ReservedSlot slot(base::team_slot + static_cast<int>(me));
    try_part(me);
  };
  {
    std::vector<std::jthread> team;
    team.reserve(parts - 1);
    unsigned started = 1;
    try {
      const base::BlockedSignals blocked;  // until all have been started
      for (; started < std::min<unsigned>(parts, base::max_team); ++started)
        team.emplace_back(work, started);
    } catch (const std::system_error&) {  // no more threads are available
    }
    try_part(0);
    for (; started < parts; ++started) try_part(started);
  }  // joined: pairs with the threads' starts and ends
  for (const auto& e : failed)
    if (e) std::rethrow_exception(e);
}

}  // namespace perdure::log
