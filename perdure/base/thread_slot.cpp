// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/thread_slot.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "perdure/base/cpu.hpp"
#include "perdure/base/status.hpp"

namespace perdure::base {
namespace {

// Indexed by number: the kernel's id of the thread that has the number; 0 if no thread has it; held
// while while_free() runs.
constexpr pid_t held = -1;
constinit std::array<std::atomic<pid_t>, max_threads> owners{};
constinit std::atomic<std::uint32_t> generation{0};

pid_t this_thread() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }

void give_back(int slot) noexcept {
  detail::slot_of_this_thread = -1;
  // What this thread wrote back is durable before the slot's next owner counts fences (MARK-5,
  // medium/line_marks.hpp).
  store_fence();
  // pairs with the acquire in take()
  owners[static_cast<std::size_t>(slot)].store(0, std::memory_order_release);
}

// A thread gives its number back when it ends, by the destructor of a key's value: the C library
// runs those after the destructors of all thread_local objects. Destructors of other keys may use a
// pool after ours has run. Then the value is set again, and the C library makes another round, up
// to 4 in all. A number that is taken after the last round is reclaimed when its owner is found
// dead (find_slot).
void at_thread_end(void* slot) {
  give_back(static_cast<int>(reinterpret_cast<std::intptr_t>(slot)) - 1);
}
// Where the process has no key left (PTHREAD_KEYS_MAX), every number comes back by the search for
// dead owners, and the next thread that takes a number tries again to make a key. Two threads may
// both make a key. This is no static local, because a forked child could wait for ever for its
// initialisation.
constinit std::atomic<std::uint64_t> end_key{0};  // the key + 1; 0 if there is none
bool find_end_key(pthread_key_t& key) noexcept {
  // The acquire pairs with the release below: the key has been made.
  if (const std::uint64_t made = end_key.load(std::memory_order_acquire); made != 0) {
    key = static_cast<pthread_key_t>(made - 1);
    return true;
  }
  if (::pthread_key_create(&key, at_thread_end) != 0) return false;
  std::uint64_t none = 0;
  if (end_key.compare_exchange_strong(none, std::uint64_t{key} + 1, std::memory_order_release,
                                      std::memory_order_acquire))
    return true;
  (void)::pthread_key_delete(key);  // another thread was faster; ours has no values yet
  key = static_cast<pthread_key_t>(none - 1);
  return true;
}

void in_child() {
  // Relaxed: the child has one thread, so there is nothing to pair with.
  generation.fetch_add(1, std::memory_order_relaxed);
  // The parent's other threads do not exist here, and this one has a new id.
  for (int i = 0; i < max_threads; ++i)
    owners[static_cast<std::size_t>(i)].store(i == detail::slot_of_this_thread ? this_thread() : 0,
                                              std::memory_order_relaxed);
}

const int registered = pthread_atfork(nullptr, nullptr, in_child);

// The acquire pairs with the release in give_back(): the last owner's rows are seen complete.
bool take(int slot, pid_t from, pid_t me) noexcept {
  return owners[static_cast<std::size_t>(slot)].compare_exchange_strong(from, me,
                                                                        std::memory_order_acquire);
}

// A thread that has ended executes nothing after this: the kernel has seen it end.
bool is_dead(pid_t thread) noexcept {
  return ::syscall(SYS_tgkill, ::getpid(), thread, 0) != 0 && errno == ESRCH;
}

int find_slot(pid_t me) noexcept {
  for (int i = 0; i < max_threads; ++i) {
    const auto& owner = owners[static_cast<std::size_t>(i)];
    do {
      if (take(i, 0, me)) return i;
      // Relaxed: take() looks again.
    } while (owner.load(std::memory_order_relaxed) == held && ::sched_yield() == 0);
  }
  for (int i = 0; i < max_threads; ++i)
    if (const pid_t owner = owners[static_cast<std::size_t>(i)].load(std::memory_order_acquire);
        is_dead(owner) && take(i, owner, me))
      return i;
  return -1;
}

}  // namespace

thread_local constinit int detail::slot_of_this_thread = -1;

int detail::take_thread_slot() {
  (void)registered;
  const int slot = find_slot(this_thread());
  if (slot < 0)
    throw error(failure(Code::too_many_threads, "", "more than 256 threads use Perdure at once",
                        "at most 256", "let threads end, or give their work to fewer"));
  // Without a key, or without memory for its value, the number is reclaimed when its owner is dead.
  if (pthread_key_t key = 0; find_end_key(key))
    (void)::pthread_setspecific(key, reinterpret_cast<void*>(static_cast<std::intptr_t>(slot) + 1));
  slot_of_this_thread = slot;
  return slot;
}

Status ensure_thread_slot() noexcept {
  try {
    (void)thread_slot();
    return {};
  } catch (const error& e) {
    return e.status();
  }
}

bool detail::hold_free_slot(int slot) noexcept { return slot < max_threads && take(slot, 0, held); }

void detail::let_go_of_slot(int slot) noexcept {
  // pairs with the acquire in take()
  owners[static_cast<std::size_t>(slot)].store(0, std::memory_order_release);
}

bool is_free(int slot) noexcept {
  // Relaxed: a hint.
  return slot < max_threads &&
         owners[static_cast<std::size_t>(slot)].load(std::memory_order_relaxed) == 0;
}

ReservedSlot::~ReservedSlot() {
  store_fence();  // MARK-5, as in give_back()
  detail::slot_of_this_thread = before_;
}

void give_back_thread_slot() noexcept {
  if (detail::slot_of_this_thread < 0 || detail::slot_of_this_thread >= max_threads) return;
  if (pthread_key_t key = 0; find_end_key(key)) (void)::pthread_setspecific(key, nullptr);
  give_back(detail::slot_of_this_thread);
}

std::uint32_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace perdure::base
