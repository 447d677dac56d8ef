/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plain C on a pool: ordinary structs with ordinary pointers, changed in __transaction_atomic
 * blocks (GCC with -fgnu-tm, which linking perdure::plain switches on), or in functions that
 * perdure_plain_atomically() runs (Clang 19 with the pass). Each is a durable transaction.
 *
 *     struct node { struct node *next; uint64_t value; };
 *     struct stack { struct node *top; };
 *
 *     perdure_open("stack.perdure", &options, &pool);
 *     perdure_plain_use(pool);
 *     struct stack *s = perdure_plain_root(pool);
 *     __transaction_atomic {
 *       struct node *n = malloc(sizeof *n);      // of the pool
 *       n->next = s->top;
 *       n->value = 7;
 *       s->top = n;
 *     }
 *     perdure_plain_end(pool);
 *     perdure_close(pool, NULL);
 *
 * Where a block can't run (the pool is full, say), it is skipped if it has a __transaction_cancel,
 * and perdure_plain_failure() says why; otherwise the process ends with a message. docs/plain.md
 * has the rules. Thread safety: as plain.hpp says.
 */
#ifndef PERDURE_PLAIN_PLAIN_H
#define PERDURE_PLAIN_PLAIN_H

#include "perdure/perdure.h"
#include "plain/safe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From here on the calling thread's blocks are on this pool; NULL: on the only one that is used so.
 * Returns PERDURE_OK, or PERDURE_OUT_OF_MEMORY. */
int perdure_plain_use(perdure_pool* pool);

/* The root object. Its size and layout are those of perdure_options. */
void* perdure_plain_root(perdure_pool* pool);

/* Why the calling thread's last block was skipped: PERDURE_OK where it was not, or cancelled
 * itself; perdure_message() has the text. */
int perdure_plain_failure(void);

/* With Clang and the pass: runs body(arg) as a transaction on the pool, durable as `when` says, and
 * as a part of one that the calling thread has open on it. The body returns 0, or rolls back; it
 * may run more than once. RETURNS PERDURE_OK, ABORTED, INVALID, and what perdure_update() returns
 * where nothing has changed (FULL, TOO_BIG, POISONED, ...).
 *
 *     static int add(void *stack) { ... }
 *     perdure_plain_atomically(pool, PERDURE_DURABLE, add, stack); */
#ifdef __clang__
#define perdure_plain_atomically(pool, when, body, arg) \
  perdure_plain_run(pool, when, perdure_plain_instrumented_c(body), arg)
/* The pass takes this call out. Where it has not run, the program does not link. */
__attribute__((nomerge)) int (*perdure_plain_instrumented_c(int (*body)(void* arg)))(
    void* arg) __asm__("perdure_plain_instrumented");
#endif
/* What perdure_plain_atomically() calls. */
int perdure_plain_run(perdure_pool* pool, perdure_durability when, int (*body)(void* arg),
                      void* arg);

/* No block begins on the pool any more. Call it before perdure_close(); no thread may be in a block
 * on the pool. */
void perdure_plain_end(perdure_pool* pool);

#ifdef __cplusplus
}
#endif

#endif
