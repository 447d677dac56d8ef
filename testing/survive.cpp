// SPDX-License-Identifier: BSD-3-Clause
#include "testing/survive.hpp"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>

namespace perdure::crash {
namespace {

thread_local sigjmp_buf* way_out = nullptr;
thread_local void* volatile wild = nullptr;
constexpr int signals[] = {SIGSEGV, SIGBUS, SIGABRT};
struct sigaction before[3];
alignas(16) char other_stack[64 << 10];  // used when the stack has overflowed

void on_signal(int signal, siginfo_t* info, void*) {
  if (way_out != nullptr) {
    wild = info->si_addr;
    siglongjmp(*way_out, signal);
  }
  // The signal is not for survive(): it gets the handling that it had before.
  for (int i = 0; i < 3; ++i)
    if (signals[i] == signal) ::sigaction(signal, &before[i], nullptr);
}

}  // namespace

std::string survive(const std::function<void()>& f) {
  struct sigaction ours = {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  stack_t stack = {}, stack_before = {};
  stack.ss_sp = other_stack;
  stack.ss_size = sizeof other_stack;
  ::sigaltstack(&stack, &stack_before);
  for (int i = 0; i < 3; ++i) ::sigaction(signals[i], &ours, &before[i]);
  sigjmp_buf here;
  way_out = &here;
  const int signal = sigsetjmp(here, 1);
  if (signal == 0) f();
  way_out = nullptr;
  for (int i = 0; i < 3; ++i) ::sigaction(signals[i], &before[i], nullptr);
  ::sigaltstack(&stack_before, nullptr);
  if (signal == 0) return {};
  if (signal == SIGABRT) return "an abort";
  char text[80];
  std::snprintf(text, sizeof text, "%s at address %p", signal == SIGSEGV ? "SIGSEGV" : "SIGBUS",
                wild);
  return text;
}

}  // namespace perdure::crash
