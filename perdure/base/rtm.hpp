// SPDX-License-Identifier: BSD-3-Clause
//
// Restricted transactional memory (Intel TSX): its four instructions, and whether this processor
// runs them. Intel SDM vol. 1, chapter 16; vol. 2, XBEGIN, XABORT, XEND, XTEST.
//
// The instructions are written as bytes, so that one binary runs everywhere and no file needs
// -mrtm. An abort returns to begin(), which then yields the cause. Memory, registers and the stack
// are as they were at begin(). Therefore the frame that called begin() may have returned: whatever
// has overwritten it is undone.
// Thread safety: all calls may be made from any thread; a hardware transaction belongs to its
// thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "perdure/base/status.hpp"

namespace perdure::base::rtm {

/// The value of begin() inside the transaction; any other value has the bits of an abort's cause.
inline constexpr unsigned started = ~0U;
inline constexpr unsigned by_abort = 1U << 0, may_succeed = 1U << 1, by_conflict = 1U << 2,
                          by_capacity = 1U << 3;
[[nodiscard]] constexpr unsigned code_of(unsigned cause) noexcept { return cause >> 24; }

/// The codes passed to abort().
inline constexpr std::uint8_t lock_is_held = 1, not_here = 2;

// To the compiler begin() is an instruction that yields one of several values of eax; everything
// else is the same each time that execution continues from here.
[[nodiscard]] [[gnu::always_inline]] inline unsigned begin() noexcept {
  unsigned status = started;
  // XBEGIN; an abort continues at the next instruction.
  asm volatile(".byte 0xc7, 0xf8, 0, 0, 0, 0" : "+a"(status) : : "memory");
  return status;
}
// XEND
[[gnu::always_inline]] inline void end() noexcept {
  asm volatile(".byte 0x0f, 0x01, 0xd5" : : : "memory");
}
template <std::uint8_t Code>
[[gnu::always_inline]] inline void abort() noexcept {
  // XABORT; it does nothing outside a transaction.
  asm volatile(".byte 0xc6, 0xf8, %c0" : : "i"(Code) : "memory");
}
/// REQUIRES: support() is ok; other processors do not have this instruction.
[[nodiscard]] [[gnu::always_inline]] inline bool inside() noexcept {
  bool yes;
  asm volatile(".byte 0x0f, 0x01, 0xd6; setnz %0" : "=q"(yes) : : "memory");  // XTEST
  return yes;
}

/// Ok where hardware transactions can be used: the processor has them, one has committed, and the
/// time-stamp counter, which orders them (tm/timestamps.hpp), is invariant. Otherwise
/// `unsupported`, with what was found. The check is made once.
[[nodiscard]] const Status& support();

namespace detail {
extern std::atomic<bool> in_use;  // written before the process's first hardware transaction
}
/// Must be called before a pool's first hardware transaction.
void use() noexcept;

/// Aborts the hardware transaction that the caller may be in. It precedes every action that an
/// abort can't undo, such as a fence after which other threads are told that bytes are durable.
[[gnu::always_inline]] inline void leave() noexcept {
  if (__builtin_expect(detail::in_use.load(std::memory_order_relaxed), 0))
    if (inside()) abort<not_here>();
}

}  // namespace perdure::base::rtm
