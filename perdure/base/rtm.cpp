// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/rtm.hpp"

#include <x86intrin.h>

#include "perdure/base/cpu.hpp"
#include "perdure/base/thread_sanitizer.hpp"

namespace perdure::base::rtm {
namespace {

// cpuid may report the instructions although microcode or the operating system (TSX_CTRL) makes
// every transaction abort.
bool one_commits() noexcept {
  [[maybe_unused]] alignas(64) volatile std::uint64_t word = 0;
  for (int tries = 0; tries < 1000; ++tries) {
    if (begin() != started) continue;
    unsigned processor;
    word = word + 1;
    asm volatile("mfence" : : : "memory");  // the same fence as in tm/timestamps.hpp
    // Under a hypervisor RDTSCP may leave the guest, and with it the transaction.
    word = __rdtscp(&processor);
    end();
    return true;
  }
  return false;
}

Status look() {
  const CpuFeatures& cpu = cpu_features();
  const auto refused = [](const char* found) {
    return failure(Code::unsupported, "", found,
                   "RTM (Intel TSX) and an invariant time-stamp counter");
  };
  if (!cpu.rtm) return refused("a processor without RTM");
  if (under_thread_sanitizer)
    return refused(
        "a build with ThreadSanitizer, which reports what hardware transactions isolate as races");
  if (cpu.rtm_always_aborts)
    return refused(
        "a processor whose RTM always aborts (cpuid 7, edx bit 11: switched off by microcode)");
  if (!cpu.invariant_tsc) return refused("a processor whose time-stamp counter is not invariant");
  if (!one_commits())
    return refused(
        "a processor whose RTM is switched off: of 1000 transactions that store the time none "
        "committed");
  return {};
}

}  // namespace

namespace detail {
std::atomic<bool> in_use{false};
}

const Status& support() {
  static const Status found = look();
  return found;
}
namespace {
// Checked at load: a child forked during the check would wait for ever for the other thread.
[[maybe_unused]] const Status& at_load = support();
}  // namespace

// Relaxed: the thread that opens the pool stores it, and other threads use the pool only
// afterwards.
void use() noexcept { detail::in_use.store(true, std::memory_order_relaxed); }

}  // namespace perdure::base::rtm
