// SPDX-License-Identifier: BSD-3-Clause
//
// Exceptions that a block makes. Their objects lie outside of the pool, and so does the memory that
// a constructor takes for one: an exception that passes on outlives the block, which is rolled
// back.
#include <new>

#include "plain/itm.hpp"
#include "plain/thread.hpp"

// The C++ run-time's, by the Itanium ABI; __cxa_tm_cleanup is GCC's own, for transactions.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __cxa_allocate_exception(std::size_t n) noexcept;
void __cxa_free_exception(void* object) noexcept;
[[noreturn]] void __cxa_rethrow();
[[noreturn]] void __cxa_throw(void* object, void* type, void (*destructor)(void*));
void* __cxa_begin_catch(void* exception) noexcept;
void __cxa_end_catch();
void __cxa_tm_cleanup(void* unthrown, void* cleaned_up, unsigned caught) noexcept;
// What libstdc++ keeps of an exception, before its object.
struct CxaException {
  void *type, *destructor, *unexpected, *terminate;
  CxaException* next;  // of those with a handler, the newest first
  int handlers;        // below 0: it was thrown again
  int selector;
  void *action, *data, *landing_pad, *adjusted;
  unsigned char unwind[32];
};
// NOLINTEND(bugprone-reserved-identifier)
}

namespace perdure::plain {
namespace {

// An exception's object begins behind this header, which a handler is begun with (unwind.h).
constexpr std::size_t unwind_header = 32;

// The object is gone, and has freed what it held.
void forget_object(Thread& thread, const void* object) noexcept {
  std::erase_if(thread.fresh, [object](const Thread::Fresh& f) { return f.object == object; });
}

}  // namespace

void note_exceptions(Thread& thread) noexcept {
  const ::CxaGlobals& globals = *thread.exceptions;
  thread.caught_before = globals.caught;
  thread.handlers_before = globals.caught != nullptr ? globals.caught->handlers : 0;
  thread.uncaught_before = globals.uncaught;
}

void free_exceptions(Thread& thread) noexcept {
  ::CxaGlobals& globals = *::__cxa_get_globals();
  // An exception that was thrown again has several handlers and one entry, and may be both.
  for (const ::CxaException* e = globals.caught; e != nullptr && e != thread.caught_before;
       e = e->next)
    std::erase(thread.in_flight, static_cast<const void*>(e + 1));
  unsigned caught = 0;
  for (const ::CxaException* e = globals.caught; e != nullptr && e != thread.caught_before;
       e = e->next)
    ++caught;
  if (caught != 0) ::__cxa_tm_cleanup(nullptr, nullptr, caught);
  // The caller's: handlers that the attempt has begun for it are left.
  if (globals.caught != nullptr && globals.caught == thread.caught_before)
    globals.caught->handlers = thread.handlers_before;
  for (void* const object : thread.in_flight) ::__cxa_free_exception(object);
  for (void* const object : thread.unthrown) ::__cxa_free_exception(object);
  globals.uncaught = thread.uncaught_before;
  for (const Thread::Fresh& f : thread.fresh)
    if (f.held) ::operator delete(reinterpret_cast<void*>(f.range.from));
}

}  // namespace perdure::plain

using perdure::plain::guarded;
using perdure::plain::state;
using perdure::plain::Thread;

extern "C" {

void* _ITM_cxa_allocate_exception(std::size_t n) {
  void* const object = ::__cxa_allocate_exception(n);
  if (!state.inside()) return object;
  guarded([&] {
    const auto at = reinterpret_cast<std::uintptr_t>(object);
    state.thread->fresh.push_back({object, {at, at + n}, false});
    state.thread->unthrown.push_back(object);
  });
  return object;
}

// Its constructor has thrown.
void _ITM_cxa_free_exception(void* object) {
  if (state.inside()) {
    std::erase(state.thread->unthrown, object);
    perdure::plain::forget_object(*state.thread, object);
  }
  ::__cxa_free_exception(object);
}

void _ITM_cxa_throw(void* object, void* type, void (*destructor)(void*)) {
  if (state.inside()) {
    std::erase(state.thread->unthrown, object);
    guarded([&] { state.thread->in_flight.push_back(object); });
  }
  ::__cxa_throw(object, type, destructor);
}

void _ITM_cxa_rethrow() {
  if (const ::CxaException* const again = ::__cxa_get_globals()->caught;
      state.inside() && again != nullptr && again != state.thread->caught_before) {
    void* const object = const_cast<::CxaException*>(again) + 1;
    guarded([&] { state.thread->in_flight.push_back(object); });
  }
  ::__cxa_rethrow();
}

void* _ITM_cxa_begin_catch(void* exception) {
  if (state.inside())
    std::erase(state.thread->in_flight,
               static_cast<char*>(exception) + perdure::plain::unwind_header);
  return ::__cxa_begin_catch(exception);
}

void _ITM_cxa_end_catch() {
  const ::CxaException* const ends = ::__cxa_get_globals()->caught;
  // With its last handler an exception is destroyed.
  if (state.inside() && ends != nullptr && ends->handlers == 1)
    perdure::plain::forget_object(*state.thread, ends + 1);
  ::__cxa_end_catch();
}

}  // extern "C"
