// SPDX-License-Identifier: BSD-3-Clause
//
// Restricted transactional memory (Intel TSX): its four instructions, and whether this processor
// runs them. Intel SDM vol. 1, chapter 16; vol. 2, XBEGIN, XABORT, XEND, XTEST.
//
// The instructions are written as bytes: one binary runs everywhere, and no file needs -mrtm. An
// abort goes back to begin(), which then returns the cause: memory and registers are as they were
// there, the stack too. So the frame that began may have returned: what was written over it is
// undone.
// Thread safety: all calls; a hardware transaction is its thread's.
#pragma once

#include <atomic>
#include <cstdint>

#include "perdure/base/status.hpp"

namespace perdure::base::rtm {

/// What begin() returns inside the transaction; else the bits of an abort's cause.
inline constexpr unsigned started = ~0U;
inline constexpr unsigned by_abort = 1U << 0, may_succeed = 1U << 1, by_conflict = 1U << 2,
                          by_capacity = 1U << 3;
[[nodiscard]] constexpr unsigned code_of(unsigned cause) noexcept { return cause >> 24; }

/// Codes of abort().
inline constexpr std::uint8_t lock_is_held = 1, not_here = 2;

// To the compiler an instruction that gives one of several values of eax: all else is the same each
// time that it goes on from here.
[[nodiscard]] [[gnu::always_inline]] inline unsigned begin() noexcept {
  unsigned status = started;
  // XBEGIN, aborts come to the next instruction
  asm volatile(".byte 0xc7, 0xf8, 0, 0, 0, 0" : "+a"(status) : : "memory");
  return status;
}
// XEND
[[gnu::always_inline]] inline void end() noexcept {
  asm volatile(".byte 0x0f, 0x01, 0xd5" : : : "memory");
}
template <std::uint8_t Code>
[[gnu::always_inline]] inline void abort() noexcept {
  // XABORT; outside a transaction it does nothing
  asm volatile(".byte 0xc6, 0xf8, %c0" : : "i"(Code) : "memory");
}
/// Only where support() is ok: elsewhere there is no such instruction.
[[nodiscard]] [[gnu::always_inline]] inline bool inside() noexcept {
  bool yes;
  asm volatile(".byte 0x0f, 0x01, 0xd6; setnz %0" : "=q"(yes) : : "memory");  // XTEST
  return yes;
}

/// Ok where hardware transactions can be used: the processor has them, one has committed, and its
/// time-stamp counter is invariant, which orders them (tm/stamps.hpp). Else `unsupported`, with
/// what was found. Looked at once.
[[nodiscard]] const Status& support();

namespace detail {
extern std::atomic<bool> in_use;  // written before the process's first hardware transaction
}
/// Before the first hardware transaction of a pool.
void use() noexcept;

/// Aborts the hardware transaction that the caller may be in: for what no abort can undo, as a
/// fence after which others are told that bytes are durable.
[[gnu::always_inline]] inline void leave() noexcept {
  if (__builtin_expect(detail::in_use.load(std::memory_order_relaxed), 0))
    if (inside()) abort<not_here>();
}

}  // namespace perdure::base::rtm
