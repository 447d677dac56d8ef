// SPDX-License-Identifier: BSD-3-Clause
//
// A process that ends as a kill leaves it, for what is to be recovered. Thread safety: call it
// while no other thread runs.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

namespace bench {

/// Runs f in a process of its own, which ends without closing anything.
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
