// SPDX-License-Identifier: BSD-3-Clause
//
// How blocks begin, end and run again (thread.hpp), and the calls of the ABI for that.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "perdure/engine/engine_base.hpp"
#include "plain/itm.hpp"
#include "plain/thread.hpp"

// Of AddressSanitizer's run-time, where the program has it.
extern "C" [[gnu::weak]] void __asan_handle_no_return();  // NOLINT(bugprone-reserved-identifier)

namespace perdure::plain {

constinit thread_local State state;

namespace {

// What GCC says of a block.
constexpr std::uint32_t instrumented = 0x0001, never_cancels = 0x0008, only_reads = 0x4000;

// Thrown by a view that stores.
struct HasToUpdate {};

// For a thread's end. What runs after it, such as a destructor of a static object, gets a Thread
// that is never freed.
struct Holder {
  ~Holder() {
    delete std::exchange(state.thread, nullptr);
    state.thread_ends = true;
  }
};

// Mostly the pool and the transaction are those of the last block.
void enter(const Binding* binding, engine::DynamicTransaction& transaction, bool owned) {
  if (state.first != binding->first() || state.objects != binding->objects()) {
    state.first = binding->first();
    state.objects = binding->objects();
  }
  if (state.transaction != &transaction) state.transaction = &transaction;
  state.bytes = binding->bytes();
  state.limit = binding->data_bytes();
  const auto mode = std::bit_cast<std::uint64_t>(Mode{.direct = transaction.direct(),
                                                      .owned = owned,
                                                      .view = transaction.in_view(),
                                                      .depth = owned ? 0U : 1U});
  std::memcpy(static_cast<void*>(&state.mode), &mode, sizeof mode);  // one store
}

void leave_pool() noexcept {
  state.bytes = 0;
  state.limit = 0;
  state.mode = outside;
}

engine::DynamicEngine::Transaction& own_transaction() {
  return static_cast<engine::DynamicEngine::Transaction&>(*state.transaction);
}

// A call may run a block, which has calls of its own.
void call_all(std::vector<Thread::Call>& of) noexcept {
  if (of.empty()) return;
  const std::vector<Thread::Call> calls = std::exchange(of, {});
  for (const Thread::Call& call : calls) call.f(call.arg);
}

// PLAIN-1, outside of the pool. `stack`: what lies between here and there belongs to functions that
// have been left, or run this. `thrown`: an exception passes on to the block's caller, and is kept
// with what it holds.
[[gnu::noinline]] void undo(Thread& thread, std::uintptr_t stack, bool thrown) noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  constexpr std::uintptr_t of_this_and_its_callees = 8 << 10;
  // mutant: plain-stores-back
  thread.undo.restore({here - of_this_and_its_callees, stack});
  while (!thread.at_rollback.empty()) {
    const Thread::Call call = thread.at_rollback.back();
    thread.at_rollback.pop_back();
    call.f(call.arg);
  }
  thread.at_commit.clear();
  if (!thrown) free_exceptions(thread);
  forget_exceptions(thread);
}

void committed(Thread& thread) noexcept {
  thread.binding = nullptr;
  if (!thread.has_work()) return;
  thread.undo.forget();
  thread.at_rollback.clear();
  forget_exceptions(thread);
  call_all(thread.at_commit);
}

// --- own blocks ---

// Returns the transaction, rolled back.
engine::DynamicEngine::Transaction& roll_back_pool() {
  engine::DynamicEngine::Transaction& transaction = own_transaction();
  transaction.rollback();
  transaction.refusal().forget();
  return transaction;
}

void end_block(Thread& thread) noexcept {
  leave_pool();
  thread.binding = nullptr;
}

// The block can't run. Returns what its begin returns then, or ends the process.
std::uint32_t skipped(Thread& thread, const Status& why) noexcept {
  end_block(thread);
  if ((thread.properties & never_cancels) != 0)
    die(why.message().c_str(),
        "run the block by perdure::PlainPool::atomically(), which throws this, or give it a "
        "__transaction_cancel, with which it is skipped");
  thread.last = why;
  return skip_block | restore_live;
}

Status status_of(const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const error& e) {
    return e.status();
  } catch (const std::exception& e) {
    return failure(Code::out_of_memory, "", e.what());
  } catch (...) {
    return failure(Code::invalid, "", "an exception of an unknown type");
  }
}

// Rolls the pool back, and waits for what another run needs. Returns why there can't be one.
Status roll_back(Thread& thread, const std::exception_ptr& why) noexcept {
  engine::DynamicEngine::Transaction& transaction = roll_back_pool();
  engine::DynamicEngine::Implementation& engine = thread.binding->engine();
  try {
    try {
      std::rethrow_exception(why);
    } catch (const engine::LogFull& full) {
      if (!transaction.mine(full)) throw;
      engine::make_log_space(engine, transaction, full.needed);
    } catch (const tm::Conflict& conflict) {
      if (!transaction.mine(conflict)) throw;
      transaction.backoff();
    } catch (const HasToUpdate&) {
      thread.update = true;
    }
    return {};
  } catch (...) {
    engine.core().poison_with_medium();  // LAW-9: the medium may be what threw
    return status_of(std::current_exception());
  }
}

// Word by word, as it was stored: wider loads would wait until those stores, and the fence before
// them, are done.
Frame copy_of(const Frame& frame) noexcept {
  Frame copy;
  const auto* const from = reinterpret_cast<const volatile std::uint64_t*>(&frame);
  auto* const to = reinterpret_cast<volatile std::uint64_t*>(&copy);
  for (std::size_t i = 0; i < sizeof frame / 8; ++i) to[i] = from[i];
  return copy;
}

// Begins the transaction of an own block. Returns what the block's begin returns.
std::uint32_t begin(Thread& thread, std::uint32_t action) noexcept {
  Status failed;
  try {
    engine::DynamicEngine::Transaction& transaction = thread.binding->engine().transaction();
    if (transaction.inside())
      throw error(failure(Code::invalid, thread.binding->path(),
                          "a block inside update() or view() of its pool", {},
                          "run it there by perdure::PlainPool::atomically()"));
    transaction.begin(thread.update);
    begin_exceptions(thread);
    enter(thread.binding, transaction, false);
    ++thread.runs;
    return action;
  } catch (...) {
    failed = status_of(std::current_exception());
  }
  return skipped(thread, failed);
}

std::uint32_t again(Thread& thread, const std::exception_ptr& why) noexcept {
  undo(thread, thread.frame.stack, false);
  const Status failed = roll_back(thread, why);
  if (!failed.ok()) return skipped(thread, failed);
  return begin(thread, run_instrumented | restore_live);
}

// The pool of the calling thread's blocks.
Binding* chosen_by(Thread& thread) {
  if (thread.chosen == nullptr && thread.only_of != changes_of_bindings()) {
    thread.only_of = changes_of_bindings();
    thread.only = only_binding();
  }
  Binding* const found = (thread.chosen != nullptr ? thread.chosen : thread.only).get();
  if (found != nullptr && !found->ended()) return found;
  throw error(
      failure(Code::invalid, "",
              found != nullptr ? "a block on the pool " + found->path() + ", which is closed"
                               : "a block where " + std::to_string(bindings()) + " pools are open",
              "one that the thread has chosen, or the only one", "call perdure::PlainPool::use()"));
}

}  // namespace

Thread& this_thread() {
  if (state.thread == nullptr) {
    if (!state.thread_ends) {
      thread_local Holder holder;
      (void)holder;
    }
    state.thread = new Thread();
  }
  return *state.thread;
}

void die(const char* found, const char* advice) noexcept {
  (void)std::fprintf(stderr, "perdure: a block of a transaction: %s%s%s\n", found,
                     *advice != '\0' ? "; " : "", advice);
  std::abort();
}

void leave_invalid(const char* found, const char* expected, const char* advice) {
  guarded([&]() -> void {
    throw error(failure(Code::invalid, state.inside() ? this_thread().binding->path() : "", found,
                        expected, advice));
  });
  __builtin_unreachable();
}

void leave_view() noexcept { leave(std::make_exception_ptr(HasToUpdate{})); }

void leave(std::exception_ptr why) noexcept {
  if (!state.inside()) die("a failure outside of one", "");
  Thread& thread = *state.thread;
  if (state.mode.owned) {
    thread.failure = std::move(why);
    // The jump leaves frames that a program with AddressSanitizer has poisoned.
    if (__asan_handle_no_return != nullptr) __asan_handle_no_return();
    perdure_plain_resume(1, &thread.attempt);
  }
  std::uint32_t action = 0;
  {
    const std::exception_ptr reason = std::move(why);
    action = again(thread, reason);
  }
  perdure_plain_resume(action, &thread.frame);
}

// --- owned blocks ---

namespace {

struct Run {
  Thread& thread;
  Binding* binding;
  void (*body)(void*);
  void* arg;
};

struct LeavesPool {
  ~LeavesPool() { leave_pool(); }
};

[[gnu::noinline]] void run_attempt(engine::DynamicTransaction& transaction, void* arg) {
  const Run& r = *static_cast<const Run*>(arg);
  Thread& thread = r.thread;
  // Of an attempt whose commit found a conflict.
  // mutant: plain-undoes-before-an-attempt
  if (thread.has_work()) {
    undo(thread, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), false);
    thread.binding = r.binding;  // an action of the program may have run a block
  }
  begin_exceptions(thread);
  const LeavesPool leaves;
  enter(thread.binding, transaction, true);
  // No object of these frames has a destructor that the jump leaves out: barriers are called by the
  // program's code, whose objects an attempt leaves as a power cut does.
  if (perdure_plain_attempt(&thread.attempt, r.body, r.arg) == 0) return;
  undo(thread, thread.attempt.stack, false);
  std::rethrow_exception(std::exchange(thread.failure, nullptr));
}

}  // namespace

void run(const std::shared_ptr<Binding>& binding, Durability durability, void (*body)(void* arg),
         void* arg) {
  if (state.inside()) {
    if (state.thread->binding != binding.get())
      throw error(failure(Code::invalid, binding->path(),
                          "a block on this pool inside one on " + state.thread->binding->path(),
                          "one pool in a block", {}));
    return body(arg);
  }
  if (binding->ended())
    throw error(failure(Code::closed, binding->path(), "a block on a pool that is closed"));
  Thread& thread = state.thread != nullptr ? *state.thread : this_thread();
  thread.binding = binding.get();
  Run one{thread, binding.get(), body, arg};
  try {
    const std::uint64_t id = binding->engine().run(true, durability, &run_attempt, &one);
    // The update may run again, and would free it twice.
    if (id == engine::joined && !thread.at_commit.empty())
      throw error(failure(Code::invalid, binding->path(),
                          "a block inside update() that frees memory outside of the pool",
                          "memory of the pool", "free it behind the update"));
  } catch (...) {
    // A part of an update() has failed: the whole of it does, even if its lambda catches this
    // (REFUSED-1).
    if (engine::DynamicEngine::Transaction& outer = binding->engine().transaction(); outer.inside())
      outer.keep_refusal();
    undo(thread, thread.attempt.stack, true);
    thread.binding = nullptr;
    throw;
  }
  committed(thread);
}

}  // namespace perdure::plain

// --- the ABI ---

using perdure::plain::state;
using perdure::plain::Thread;

extern "C" {

// libstdc++ refers weakly to what its exceptions need in a block, which takes nothing out of an
// archive: whatever has blocks has all of it.
[[gnu::visibility("hidden")]] extern const void* const perdure_plain_all[];
[[gnu::used]] const void* const perdure_plain_all[] = {
    reinterpret_cast<const void*>(&_ITM_malloc), reinterpret_cast<const void*>(&_ITM_LB),
    reinterpret_cast<const void*>(&_ITM_cxa_throw),
    reinterpret_cast<const void*>(&_ITM_registerTMCloneTable)};

std::uint32_t perdure_plain_begin(std::uint32_t properties, const perdure::plain::Frame* frame) {
  namespace plain = perdure::plain;
  if ((properties & plain::instrumented) == 0)
    plain::die("code without barriers",
               "a relaxed block that makes calls which no transaction can undo is none: make it "
               "__transaction_atomic, and make those calls outside of it");
  if (state.inside()) {
    ++state.mode.depth;
    return plain::run_instrumented | plain::save_live;
  }
  perdure::Status failed;
  try {
    (void)plain::this_thread();
  } catch (const std::bad_alloc&) {
    plain::die("no memory for a thread's first block", "");
  }
  Thread& thread = *state.thread;
  thread.properties = properties;
  thread.frame = plain::copy_of(*frame);
  thread.runs = 0;
  thread.last = {};
  try {
    thread.update = (properties & plain::only_reads) == 0;
    thread.binding = plain::chosen_by(thread);
  } catch (...) {
    failed = plain::status_of(std::current_exception());
  }
  if (!failed.ok()) return plain::skipped(thread, failed);
  return plain::begin(thread, plain::run_instrumented | plain::save_live);
}

void _ITM_commitTransaction() {
  namespace plain = perdure::plain;
  if (state.mode.depth > 1 || state.mode.owned) {
    --state.mode.depth;
    return;
  }
  Thread& thread = *state.thread;
  plain::guarded([&] {
    auto& transaction = plain::own_transaction();
    if (transaction.refusal().kept()) transaction.refusal().again();
    (void)transaction.commit(thread.binding->durability());
  });
  plain::end_block(thread);
  plain::committed(thread);
}

// An exception passes on out of the block. In an owned one, engine::run() rolls back.
void _ITM_commitTransactionEH(void*) {
  namespace plain = perdure::plain;
  if (state.mode.depth > 1 || state.mode.owned) {
    --state.mode.depth;
    return;
  }
  Thread& thread = *state.thread;
  plain::undo(thread, thread.frame.stack, true);
  (void)plain::roll_back_pool();
  (void)thread.binding->engine().core().poison_with_medium();  // LAW-9
  plain::end_block(thread);
}

void _ITM_abortTransaction(int reason) {
  namespace plain = perdure::plain;
  constexpr int by_user = 1, outermost = 16;
  if ((reason & by_user) == 0) plain::die("an abort that the program did not ask for", "");
  if (state.mode.owned)
    plain::leave_invalid("__transaction_cancel inside atomically()", "none",
                         "throw an exception instead: it rolls back and passes on");
  if (state.mode.depth > 1 && (reason & outermost) == 0)
    plain::die("__transaction_cancel in a block inside another one",
               "a block can't be undone alone: cancel the outer one, by "
               "__transaction_cancel [[outer]]");
  Thread& thread = *state.thread;
  plain::undo(thread, thread.frame.stack, false);
  (void)plain::roll_back_pool();
  plain::end_block(thread);
  plain::perdure_plain_resume(plain::skip_block | plain::restore_live, &thread.frame);
}

void _ITM_changeTransactionMode(int) {
  perdure::plain::die("a call that no transaction can undo",
                      "make it outside of the block (the compiler takes it for possible in a "
                      "relaxed block, or through a pointer)");
}

int _ITM_inTransaction() { return state.inside() ? 1 : 0; }
std::uint32_t _ITM_getTransactionId() {
  if (!state.inside()) return 1;
  return state.mode.owned ? 2 : static_cast<std::uint32_t>(state.thread->runs) + 1;
}
void _ITM_addUserCommitAction(void (*f)(void*), std::uint32_t, void* arg) {
  if (!state.inside()) return f(arg);
  perdure::plain::guarded([&] { state.thread->at_commit.push_back({f, arg}); });
}
void _ITM_addUserUndoAction(void (*f)(void*), void* arg) {
  if (!state.inside()) return;
  perdure::plain::guarded([&] { state.thread->at_rollback.push_back({f, arg}); });
}
int _ITM_versionCompatible(int version) { return version == 90 ? 1 : 0; }
const char* _ITM_libraryVersion() { return "perdure"; }
void _ITM_error(const void*, int) { perdure::plain::die("an error that the compiler found", ""); }
void _ITM_dropReferences(void*, std::size_t) {
  perdure::plain::die("a call of _ITM_dropReferences", "no compiler makes it");
}

}  // extern "C"
