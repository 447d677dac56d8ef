// SPDX-License-Identifier: BSD-3-Clause
#include "plain/access.hpp"

#include <immintrin.h>

#include "plain/itm.hpp"

namespace perdure::plain {
namespace {

// Whether the n bytes are objects', in a pool that may have grown.
bool of_objects(const void* at, std::size_t n) noexcept {
  if (state.of_objects(at, n)) return true;
  state.limit = state.thread->binding->data_bytes();
  return state.of_objects(at, n);
}

}  // namespace

void read_pool(void* to, const void* from, std::size_t n) noexcept {
  guarded([&] { rtx(*state.transaction).read_bytes(to, from, n); });
}

void write_pool(void* to, const void* from, std::size_t n) noexcept {
  if (__builtin_expect(!of_objects(to, n), 0))
    leave_invalid("a store to an address of the pool that is no object's",
                  "one in its root, or in a block that was allocated");
  if (__builtin_expect(state.mode.view, 0)) leave_view();
  guarded([&] { tx(*state.transaction).write_bytes(to, from, n); });
}

void save_memory(const void* at, std::size_t n) noexcept {
  if (!state.inside()) return;
  Thread& thread = *state.thread;
  // An exception that passes on keeps what was stored to it.
  for (const Thread::Fresh& made : thread.fresh)
    if (made.range.has(reinterpret_cast<std::uintptr_t>(at))) return;
  if (in_other_pool(at, *thread.binding))
    leave_invalid("a store to another pool than the block's", "one pool in a block");
  guarded([&] { thread.undo.save(at, n); });
}

}  // namespace perdure::plain

// The ABI's calls for a type: loads (R), also behind a load or a store of the block (RaR, RaW) or
// before a store (RfW); stores (W, WaR, WaW); and the saving of what is stored plainly (L). Values
// go by address: one function serves all processors, with and without AVX.
#define PERDURE_ITM_LOAD(T, CALL, TARGET)          \
  TARGET T _ITM_##CALL(const T* from) {            \
    T value;                                       \
    perdure::plain::load(&value, from, sizeof(T)); \
    return value;                                  \
  }
#define PERDURE_ITM_STORE(T, CALL, TARGET) \
  TARGET void _ITM_##CALL(T* to, T value) { perdure::plain::store(to, &value, sizeof(T)); }
#define PERDURE_ITM_ACCESS(T, NAME, TARGET) \
  PERDURE_ITM_LOAD(T, R##NAME, TARGET)      \
  PERDURE_ITM_LOAD(T, RaR##NAME, TARGET)    \
  PERDURE_ITM_LOAD(T, RaW##NAME, TARGET)    \
  PERDURE_ITM_LOAD(T, RfW##NAME, TARGET)    \
  PERDURE_ITM_STORE(T, W##NAME, TARGET)     \
  PERDURE_ITM_STORE(T, WaR##NAME, TARGET)   \
  PERDURE_ITM_STORE(T, WaW##NAME, TARGET)   \
  TARGET void _ITM_L##NAME(const T* at) { perdure::plain::log(at, sizeof(T)); }

namespace perdure::plain {
namespace {

// What is stored plainly afterwards: a compiler knows it to be the thread's own.
void log(const void* at, std::size_t n) noexcept {
  if (state.in_pool(at))
    die("a plain store to the pool", "report it: the compiler took the memory for a local");
  save_memory(at, n);
}

}  // namespace
}  // namespace perdure::plain

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"  // complex numbers of C
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
#define PERDURE_ANY_TARGET
#define PERDURE_AVX_TARGET __attribute__((target("avx")))
PERDURE_ITM_ACCESS(std::uint8_t, U1, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(std::uint16_t, U2, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(std::uint32_t, U4, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(std::uint64_t, U8, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(float, F, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(double, D, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(long double, E, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(__complex__ float, CF, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(__complex__ double, CD, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(__complex__ long double, CE, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(__m64, M64, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(__m128, M128, PERDURE_ANY_TARGET)
PERDURE_ITM_ACCESS(__m256, M256, PERDURE_AVX_TARGET)

void _ITM_LB(const void* at, std::size_t n) { perdure::plain::log(at, n); }
// NOLINTEND(bugprone-reserved-identifier)
}
#pragma GCC diagnostic pop
