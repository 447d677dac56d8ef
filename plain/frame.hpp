// SPDX-License-Identifier: BSD-3-Clause
//
// Frame: the registers with which a function called _ITM_beginTransaction, so that its block can be
// run again from there, or perdure_plain_attempt: what the psABI of x86-64 keeps over calls, the
// stack pointer and the instruction behind the call. frame.cpp has the assembly.
// Thread safety: a Frame belongs to its thread, and is valid until that function returns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure::plain {

struct Frame {
  /// The stack pointer behind the call: what lies below it belongs to the functions that the block
  /// has called.
  std::uintptr_t stack;
  std::uintptr_t rbx, rbp, r12, r13, r14, r15;
  std::uintptr_t next;          ///< the instruction behind the call
  std::uintptr_t shadow_stack;  ///< its pointer (CET); 0: there is none
};
static_assert(sizeof(Frame) == 72 && offsetof(Frame, shadow_stack) == 64, "frame.cpp knows it");

/// What _ITM_beginTransaction returns to a block: bits of the ABI.
enum Action : std::uint32_t {
  run_instrumented = 0x01,
  run_uninstrumented = 0x02,
  save_live = 0x04,
  restore_live = 0x08,
  skip_block = 0x10
};

extern "C" {
/// Saves the caller's frame, which was zeros at first, and calls body(arg), which may throw.
/// Returns 0, or the action of a perdure_plain_resume() with the frame.
std::uint32_t perdure_plain_attempt(Frame* frame, void (*body)(void* arg), void* arg);
/// Returns `action` from the call in which the frame was saved. No destructor of the frames in
/// between runs.
[[noreturn]] void perdure_plain_resume(std::uint32_t action, const Frame* frame);
}

}  // namespace perdure::plain
