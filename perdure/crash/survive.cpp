// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/crash/survive.hpp"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>

namespace perdure::crash {
namespace {

thread_local sigjmp_buf* way_out = nullptr;
thread_local void* volatile wild = nullptr;
struct sigaction before_segv, before_bus;

void on_signal(int signal, siginfo_t* info, void*) {
  if (way_out != nullptr) {
    wild = info->si_addr;
    siglongjmp(*way_out, signal);
  }
  // not ours: what it would have been without us
  ::sigaction(signal, signal == SIGSEGV ? &before_segv : &before_bus, nullptr);
}

}  // namespace

std::string survive(const std::function<void()>& f) {
  struct sigaction ours = {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGSEGV, &ours, &before_segv);
  ::sigaction(SIGBUS, &ours, &before_bus);
  sigjmp_buf here;
  way_out = &here;
  const int signal = sigsetjmp(here, 1);
  if (signal == 0) f();
  way_out = nullptr;
  ::sigaction(SIGSEGV, &before_segv, nullptr);
  ::sigaction(SIGBUS, &before_bus, nullptr);
  if (signal == 0) return {};
  char text[80];
  std::snprintf(text, sizeof text, "%s at address %p", signal == SIGSEGV ? "SIGSEGV" : "SIGBUS", wild);
  return text;
}

}  // namespace perdure::crash
