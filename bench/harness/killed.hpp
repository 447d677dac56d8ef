// SPDX-License-Identifier: BSD-3-Clause
//
// A process that ends as if it were killed, for measurements of recovery. Thread safety: call it
// while no other thread runs.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

namespace bench {

/// Runs f in a child process, which exits without closing anything.
template <class F>
void in_a_killed_process(F f) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    try {
      f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("the process that was to be recovered failed");
}

}  // namespace bench
