// SPDX-License-Identifier: BSD-3-Clause
//
// What a block copies, fills, allocates and frees. Memory that it allocates is the pool's, except
// for exceptions that it makes (exceptions.cpp); what it frees goes back to where it came from.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "plain/access.hpp"
#include "plain/itm.hpp"

namespace perdure::plain {
namespace {

constexpr std::size_t piece = 512;

// Copies n bytes, which may overlap, between memory and the pool, or in either.
void* copy(void* to, const void* from, std::size_t n) noexcept {
  std::array<std::byte, piece> buffer;
  auto* const out = static_cast<std::byte*>(to);
  const auto* const in = static_cast<const std::byte*>(from);
  const bool backwards = out > in;
  for (std::size_t done = 0; done < n;) {
    const std::size_t m = std::min(n - done, piece), at = backwards ? n - done - m : done;
    load(buffer.data(), in + at, m);
    store(out + at, buffer.data(), m);
    done += m;
  }
  return to;
}

void* fill(void* to, int value, std::size_t n) noexcept {
  if (!state.in_pool(to)) {
    save_memory(to, n);
    return std::memset(to, value, n);
  }
  std::array<std::byte, piece> buffer;
  std::memset(buffer.data(), value, std::min(n, piece));
  for (std::size_t done = 0; done < n; done += piece)
    write_pool(static_cast<std::byte*>(to) + done, buffer.data(), std::min(n - done, piece));
  return to;
}

void* allocate(std::size_t n) noexcept {
  if (!state.inside()) return std::malloc(n);
  if (state.mode.view) leave_view();
  return guarded([&] { return state.transaction->alloc(std::max<std::size_t>(n, 1)); });
}

// Of an exception that is being made: memory that it may hold when the block has rolled back.
void* allocate_object(std::size_t n) noexcept {
  if (!state.inside()) return guarded([&] { return ::operator new(n); });
  Thread& thread = *state.thread;
  if (thread.unthrown.empty()) return allocate(n);
  return guarded([&] {
    void* const block = ::operator new(n);
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    thread.fresh.push_back({thread.unthrown.back(), {at, at + n}, true});
    return block;
  });
}

// PLAIN-2
void release(void* block, void (*free)(void*)) noexcept {
  if (block == nullptr) return;
  if (state.in_pool(block)) {
    if (state.mode.view) leave_view();
    guarded([&] { state.transaction->free(block); });
    return;
  }
  if (!state.inside()) return free(block);
  Thread& thread = *state.thread;
  if (in_other_pool(block, *thread.binding))
    leave_invalid("a free of memory of another pool than the block's", "one pool in a block");
  // What the attempt has made itself: nobody else knows it.
  const auto own = [block](const Thread::Fresh& f) {
    return f.held && f.range.from == reinterpret_cast<std::uintptr_t>(block);
  };
  if (std::erase_if(thread.fresh, own) != 0) return free(block);
  // mutant: plain-frees-later
  guarded([&] { state.thread->at_commit.push_back({free, block}); });
}

void* zeros(std::size_t count, std::size_t n) noexcept {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, n, &all)) return nullptr;
  void* const block = allocate(all);
  if (block != nullptr) fill(block, 0, all);
  return block;
}

}  // namespace
}  // namespace perdure::plain

namespace plain = perdure::plain;

// What is copied from (R) and to (W) is memory of the block's (t) or its thread's own (n), also
// behind a load (aR) or a store (aW) of the block: here it goes by the address. GCC takes the
// result as that of the call that it replaces, although the ABI has none.
#define PERDURE_ITM_COPY(KIND)                                          \
  void* _ITM_memcpy##KIND(void* to, const void* from, std::size_t n) {  \
    return plain::copy(to, from, n);                                    \
  }                                                                     \
  void* _ITM_memmove##KIND(void* to, const void* from, std::size_t n) { \
    return plain::copy(to, from, n);                                    \
  }
#define PERDURE_ITM_FILL(KIND) \
  void* _ITM_memset##KIND(void* to, int value, std::size_t n) { return plain::fill(to, value, n); }

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
PERDURE_ITM_COPY(RnWt)
PERDURE_ITM_COPY(RnWtaR)
PERDURE_ITM_COPY(RnWtaW)
PERDURE_ITM_COPY(RtWn)
PERDURE_ITM_COPY(RtWt)
PERDURE_ITM_COPY(RtWtaR)
PERDURE_ITM_COPY(RtWtaW)
PERDURE_ITM_COPY(RtaRWn)
PERDURE_ITM_COPY(RtaRWt)
PERDURE_ITM_COPY(RtaRWtaR)
PERDURE_ITM_COPY(RtaRWtaW)
PERDURE_ITM_COPY(RtaWWn)
PERDURE_ITM_COPY(RtaWWt)
PERDURE_ITM_COPY(RtaWWtaR)
PERDURE_ITM_COPY(RtaWWtaW)
PERDURE_ITM_FILL(W)
PERDURE_ITM_FILL(WaR)
PERDURE_ITM_FILL(WaW)

// To memory of the caller's own frame, which no attempt needs again.
void perdure_plain_fetch(void* to, const void* from, std::size_t n) { plain::load(to, from, n); }

void* _ITM_malloc(std::size_t n) { return plain::allocate(n); }
void* _ITM_calloc(std::size_t count, std::size_t n) { return plain::zeros(count, n); }
void _ITM_free(void* block) { plain::release(block, std::free); }

// The instrumented forms of operator new and delete, by their mangled names.
using Size = std::size_t;
using Nothrow = const std::nothrow_t&;
constexpr auto free_one = [](void* block) { ::operator delete(block); };
constexpr auto free_several = [](void* block) { ::operator delete[](block); };
#define PERDURE_NEW(NAME, SYMBOL, ...)     \
  void* NAME(__VA_ARGS__) __asm__(SYMBOL); \
  void* NAME(__VA_ARGS__)
#define PERDURE_DELETE(NAME, SYMBOL, ...) \
  void NAME(__VA_ARGS__) __asm__(SYMBOL); \
  void NAME(__VA_ARGS__)
PERDURE_NEW(plain_new, "_ZGTtnwm", Size n) { return plain::allocate_object(n); }
PERDURE_NEW(plain_new_v, "_ZGTtnam", Size n) { return plain::allocate_object(n); }
PERDURE_NEW(plain_new_t, "_ZGTtnwmRKSt9nothrow_t", Size n, Nothrow) {
  return plain::allocate_object(n);
}
PERDURE_NEW(plain_new_vt, "_ZGTtnamRKSt9nothrow_t", Size n, Nothrow) {
  return plain::allocate_object(n);
}
PERDURE_DELETE(plain_delete, "_ZGTtdlPv", void* block) { plain::release(block, free_one); }
PERDURE_DELETE(plain_delete_v, "_ZGTtdaPv", void* block) { plain::release(block, free_several); }
PERDURE_DELETE(plain_delete_s, "_ZGTtdlPvm", void* block, Size) { plain::release(block, free_one); }
PERDURE_DELETE(plain_delete_vs, "_ZGTtdaPvm", void* block, Size) {
  plain::release(block, free_several);
}
PERDURE_DELETE(plain_delete_t, "_ZGTtdlPvRKSt9nothrow_t", void* block, Nothrow) {
  plain::release(block, free_one);
}
PERDURE_DELETE(plain_delete_vt, "_ZGTtdaPvRKSt9nothrow_t", void* block, Nothrow) {
  plain::release(block, free_several);
}
// NOLINTEND(bugprone-reserved-identifier)
}
