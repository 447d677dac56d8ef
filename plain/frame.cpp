// SPDX-License-Identifier: BSD-3-Clause
#include "plain/frame.hpp"

#include "plain/thread.hpp"

#if !defined(__x86_64__)
#error "perdure::plain knows the registers of x86-64 only"
#endif

using perdure::plain::Mode;
using perdure::plain::State;
static_assert(offsetof(State, mode) == 40 && offsetof(Mode, owned) == 1 &&
                  offsetof(Mode, depth) == 4,
              "below");

// _ITM_beginTransaction(properties, ...) saves a Frame on its stack and calls
// perdure_plain_begin(properties, frame), which copies it. On entry the stack pointer is at the
// return address; 88 bytes below it leave the call aligned to 16. In an owned block nothing jumps
// to a frame, and the block is counted at once: behind a commit's fence each store takes room in
// the processor's store buffer.
//
// Where the processor keeps a shadow stack of return addresses (CET), perdure_plain_resume takes
// off it what the abandoned calls have put there, and the return address of
// _ITM_beginTransaction. Without one, rdsspq does nothing and leaves 0.
//
// perdure_plain_registers fills the Frame at FRAME; %rax has the caller's stack pointer, %r11 the
// return address. It leaves the shadow stack's pointer in %rax. Without a shadow stack, the Frame
// keeps the 0 that it was made with.
asm(R"(
  .text
  .macro perdure_plain_registers FRAME
  movq %rax, 0(\FRAME)
  movq %rbx, 8(\FRAME)
  movq %rbp, 16(\FRAME)
  movq %r12, 24(\FRAME)
  movq %r13, 32(\FRAME)
  movq %r14, 40(\FRAME)
  movq %r15, 48(\FRAME)
  movq %r11, 56(\FRAME)
  xorl %eax, %eax
  rdsspq %rax
  testq %rax, %rax
  je 2f
  movq %rax, 64(\FRAME)
2:
  .endm

  .globl _ITM_beginTransaction
  .type _ITM_beginTransaction, @function
_ITM_beginTransaction:
  .cfi_startproc
  endbr64
  movq _ZN7perdure5plain5stateE@gottpoff(%rip), %rax
  cmpb $0, %fs:41(%rax)
  je 1f
  testl $1, %edi
  je 1f
  addl $1, %fs:44(%rax)
  movl $5, %eax
  ret
1:
  leaq 8(%rsp), %rax
  movq (%rsp), %r11
  subq $88, %rsp
  .cfi_adjust_cfa_offset 88
  movq $0, 64(%rsp)
  perdure_plain_registers %rsp
  movq %rsp, %rsi
  call perdure_plain_begin
  addq $88, %rsp
  .cfi_adjust_cfa_offset -88
  ret
  .cfi_endproc
  .size _ITM_beginTransaction, .-_ITM_beginTransaction

  .globl perdure_plain_attempt
  .type perdure_plain_attempt, @function
perdure_plain_attempt:
  .cfi_startproc
  endbr64
  leaq 8(%rsp), %rax
  movq (%rsp), %r11
  perdure_plain_registers %rdi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movq %rdx, %rdi
  call *%rsi
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  xorl %eax, %eax
  ret
  .cfi_endproc
  .size perdure_plain_attempt, .-perdure_plain_attempt

  .globl perdure_plain_resume
  .type perdure_plain_resume, @function
perdure_plain_resume:
  .cfi_startproc
  endbr64
  movl %edi, %eax
  xorl %edx, %edx
  rdsspq %rdx
  testq %rdx, %rdx
  je 3f
  movq 64(%rsi), %rcx
  subq %rdx, %rcx
  shrq $3, %rcx
  addq $1, %rcx
  movl $255, %edx
1:
  cmpq %rdx, %rcx
  cmovbq %rcx, %rdx
  incsspq %rdx
  subq %rdx, %rcx
  ja 1b
3:
  movq 8(%rsi), %rbx
  movq 16(%rsi), %rbp
  movq 24(%rsi), %r12
  movq 32(%rsi), %r13
  movq 40(%rsi), %r14
  movq 48(%rsi), %r15
  movq 56(%rsi), %rdx
  movq 0(%rsi), %rsp
  jmp *%rdx
  .cfi_endproc
  .size perdure_plain_resume, .-perdure_plain_resume
)");
