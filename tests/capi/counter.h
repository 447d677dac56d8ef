/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A root object with a counter, and transactions on it.
 */
#ifndef PERDURE_TESTS_CAPI_COUNTER_H
#define PERDURE_TESTS_CAPI_COUNTER_H

#include <perdure.h>

struct root {
  uint64_t count;
};

static inline int add(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  (void)arg;
  perdure_write_word(tx, &root->count, perdure_read_word(tx, &root->count) + 1);
  return 0;
}
/* Stores the count in *arg, a uint64_t. */
static inline int look(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  *(uint64_t*)arg = perdure_read_word(tx, &root->count);
  return 0;
}

#endif
