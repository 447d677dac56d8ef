/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plain C on a pool: ordinary structs with ordinary pointers, changed in __transaction_atomic
 * blocks (GCC with -fgnu-tm, which linking perdure::plain switches on). Each block is a durable
 * transaction.
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

/* No block begins on the pool any more. Call it before perdure_close(); no thread may be in a block
 * on the pool. */
void perdure_plain_end(perdure_pool* pool);

#ifdef __cplusplus
}
#endif

#endif
