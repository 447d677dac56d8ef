/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program in plain C, which knows nothing of pools: items in a red-black tree (sys/tree.h of the
 * BSDs), in a queue (sys/queue.h) and in a chained hash table, all by the text of those headers.
 * Thread safety: none of its own.
 */
#ifndef PERDURE_TESTS_PLAIN_STORE_H
#define PERDURE_TESTS_PLAIN_STORE_H

#include <bsd/sys/cdefs.h>
#include <bsd/sys/tree.h>
#include <stdint.h>
#include <sys/queue.h>

#include "plain/safe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STORE_BUCKETS 16

struct item {
  RB_ENTRY(item) in_tree;
  TAILQ_ENTRY(item) in_queue;
  struct item* in_bucket; /* the next one */
  uint64_t key, value;
};

struct store {
  RB_HEAD(tree, item) tree;
  TAILQ_HEAD(queue, item) queue;
  struct item* buckets[STORE_BUCKETS];
  uint64_t count;
};

#define STORE_CALL PERDURE_TRANSACTION_SAFE

STORE_CALL void store_begin(struct store* s);
/* Adds an item, or gives it another value. */
STORE_CALL void store_put(struct store* s, uint64_t key, uint64_t value);
/* Returns whether there was one. */
STORE_CALL int store_remove(struct store* s, uint64_t key);
/* Removes the item that was added first; 0: there is none. */
STORE_CALL uint64_t store_pop(struct store* s);
STORE_CALL uint64_t store_get(struct store* s, uint64_t key);
/* The sum of the values, by the tree's order. */
STORE_CALL uint64_t store_sum(struct store* s);

#ifdef __cplusplus
}
#endif

#endif
