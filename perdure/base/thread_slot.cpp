// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/thread_slot.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "perdure/base/cpu.hpp"
#include "perdure/base/status.hpp"

namespace perdure::base {
namespace {

constinit std::array<std::atomic<bool>, max_threads> taken{};
constinit std::atomic<std::uint32_t> generation{0};

struct ForkHooks {
  std::mutex mutex;
  std::vector<std::pair<void (*)(void*), void*>> hooks;
};

ForkHooks& fork_hooks() {
  static ForkHooks* const hooks = new ForkHooks;  // never destroyed: a late thread may still fork
  return *hooks;
}

void in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);  // the child has one thread: nobody to pair with
  for (const auto& [f, arg] : fork_hooks().hooks) f(arg);
}

const int registered = pthread_atfork(nullptr, nullptr, in_child);

// Gives the number back when the thread ends.
struct SlotGuard {
  int slot = -1;
  ~SlotGuard() { give_back(); }
  void give_back() noexcept {
    if (slot < 0) return;
    detail::slot_of_this_thread = -1;
    // What this thread wrote back is durable before the slot's next owner counts fences
    // (MARK-5, medium/line_marks.hpp).
    store_fence();
    taken[static_cast<std::size_t>(slot)].store(false, std::memory_order_release);  // pairs with the acquire in take_thread_slot
    slot = -1;
  }
};
thread_local SlotGuard guard;

}  // namespace

thread_local constinit int detail::slot_of_this_thread = -1;

int detail::take_thread_slot() {
  (void)registered;
  for (int i = 0; i < max_threads; ++i) {
    bool expected = false;
    // acquire pairs with the release in ~SlotGuard: the last owner's rows are seen complete
    if (taken[static_cast<std::size_t>(i)].compare_exchange_strong(expected, true, std::memory_order_acquire)) {
      guard.slot = i;
      slot_of_this_thread = i;
      return i;
    }
  }
  throw error(failure(Code::full, "", "more than 256 threads use Perdure at once", "at most 256", "let threads end, or pool them"));
}

ReservedSlot::~ReservedSlot() {
  store_fence();  // MARK-5, as in SlotGuard
  detail::slot_of_this_thread = before_;
}

void give_back_thread_slot() noexcept { guard.give_back(); }

std::uint32_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

void at_fork_child(void (*f)(void*), void* arg) {
  auto& all = fork_hooks();
  const std::lock_guard lock(all.mutex);
  all.hooks.emplace_back(f, arg);
}

}  // namespace perdure::base
