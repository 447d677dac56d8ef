// SPDX-License-Identifier: BSD-3-Clause
//
// Exceptions that a block makes. Their objects lie outside of the pool, and so does the memory that
// a constructor takes for one: an exception that passes on outlives the block, which is rolled
// back.
#include <cstdlib>

#include "plain/itm.hpp"
#include "plain/thread.hpp"

// The C++ run-time's, by the Itanium ABI; __cxa_tm_cleanup is GCC's own, for transactions.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __cxa_allocate_exception(std::size_t n) noexcept;
void __cxa_free_exception(void* object) noexcept;
[[noreturn]] void __cxa_throw(void* object, void* type, void (*destructor)(void*));
void* __cxa_begin_catch(void* exception) noexcept;
void __cxa_end_catch();
void __cxa_tm_cleanup(void* unthrown, void* cleaned_up, unsigned caught) noexcept;
struct CxaGlobals {
  void* caught;
  unsigned uncaught;
};
CxaGlobals* __cxa_get_globals() noexcept;
// NOLINTEND(bugprone-reserved-identifier)
}

namespace perdure::plain {
namespace {

// An exception's object begins behind this header, which a handler is begun with (unwind.h).
constexpr std::size_t unwind_header = 32;

}  // namespace

void free_exceptions(Thread& thread) noexcept {
  // In the order in which they were left: handlers first.
  if (thread.caught != 0) ::__cxa_tm_cleanup(nullptr, nullptr, thread.caught);
  for (void* const object : thread.in_flight) ::__cxa_free_exception(object);
  if (thread.unthrown != nullptr) ::__cxa_free_exception(thread.unthrown);
  if (!thread.fresh.empty()) ::__cxa_get_globals()->uncaught = thread.uncaught_before;
  for (void* const block : thread.held) std::free(block);
}

void forget_exceptions(Thread& thread) noexcept {
  thread.fresh.clear();
  thread.held.clear();
  thread.in_flight.clear();
  thread.unthrown = nullptr;
  thread.caught = 0;
}

}  // namespace perdure::plain

using perdure::plain::guarded;
using perdure::plain::state;
using perdure::plain::Thread;

extern "C" {

void* _ITM_cxa_allocate_exception(std::size_t n) {
  void* const object = ::__cxa_allocate_exception(n);
  if (!state.inside()) return object;
  if (state.thread->fresh.empty()) state.thread->uncaught_before = ::__cxa_get_globals()->uncaught;
  guarded([&] {
    const auto at = reinterpret_cast<std::uintptr_t>(object);
    state.thread->fresh.push_back({at, at + n});
  });
  state.thread->unthrown = object;
  return object;
}

void _ITM_cxa_free_exception(void* object) {
  if (state.inside()) state.thread->unthrown = nullptr;
  ::__cxa_free_exception(object);
}

void _ITM_cxa_throw(void* object, void* type, void (*destructor)(void*)) {
  if (state.inside()) {
    state.thread->unthrown = nullptr;
    guarded([&] { state.thread->in_flight.push_back(object); });
  }
  ::__cxa_throw(object, type, destructor);
}

void* _ITM_cxa_begin_catch(void* exception) {
  if (state.inside()) {
    ++state.thread->caught;
    std::erase(state.thread->in_flight,
               static_cast<char*>(exception) + perdure::plain::unwind_header);
  }
  return ::__cxa_begin_catch(exception);
}

void _ITM_cxa_end_catch() {
  ::__cxa_end_catch();
  if (!state.inside()) return;
  Thread& thread = *state.thread;
  // With the last handler its exception is gone, and has freed what it held; or it was thrown
  // again, and is the caller's.
  if (--thread.caught == 0 && thread.in_flight.empty()) {
    thread.held.clear();
    thread.fresh.clear();
  }
}

}  // extern "C"
