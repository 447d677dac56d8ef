// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a thread of this process sleeps: the kernel's statement about it, read repeatedly. No
// time is measured. A thread that waits by spinning or yielding is runnable at every look, and one
// that sleeps and polls is switched in and out between two looks; both are distinguished from a
// thread that the kernel has blocked until another one wakes it. Thread safety: any thread.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace perdure::test {

/// The state of one thread in /proc.
struct ThreadState {
  char state = '?';            ///< R: runnable, S: blocked
  std::uint64_t switches = 0;  ///< how often it has left its processor
  friend bool operator==(const ThreadState&, const ThreadState&) = default;
};

/// The state of the thread with that kernel id; '?' if there is none.
inline ThreadState state_of_thread(pid_t id) {
  std::ifstream status("/proc/self/task/" + std::to_string(id) + "/status");
  ThreadState found;
  std::uint64_t n = 0;
  for (std::string word; status >> word;) {
    if (word == "State:") status >> found.state;
    if (word.ends_with("voluntary_ctxt_switches:") && status >> n) found.switches += n;
  }
  return found;
}

/// Waits until the thread has been blocked for 20 looks in a row, 1 ms apart, without having run
/// between them, or until `ended()`. True: it is blocked. False: it has ended, or it was still
/// running at the 5,000th look.
template <class Ended>
bool falls_asleep(pid_t id, Ended&& ended) {
  ThreadState before;
  for (int look = 0, same = 0; look < 5000 && same < 20; ++look) {
    if (ended()) return false;
    const ThreadState now = state_of_thread(id);
    same = now.state == 'S' && now == before ? same + 1 : 0;
    if (same == 20) return true;
    before = now;
    // The time between two looks; nothing depends on how long it takes.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace perdure::test
