/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plain/store.h"

#include <stdlib.h>

static int compare(const struct item* a, const struct item* b) {
  return (a->key > b->key) - (a->key < b->key);
}
RB_PROTOTYPE(tree, item, in_tree, compare)
RB_GENERATE(tree, item, in_tree, compare)

static struct item** bucket_of(struct store* s, uint64_t key) {
  return &s->buckets[key * 0x9e3779b97f4a7c15u >> 60];
}

static struct item* find(struct store* s, uint64_t key) {
  struct item* i = *bucket_of(s, key);
  while (i != NULL && i->key != key) i = i->in_bucket;
  return i;
}

STORE_CALL void store_begin(struct store* s) {
  RB_INIT(&s->tree);
  TAILQ_INIT(&s->queue);
}

STORE_CALL void store_put(struct store* s, uint64_t key, uint64_t value) {
  struct item *i = find(s, key), **bucket = bucket_of(s, key);
  if (i != NULL) {
    i->value = value;
    return;
  }
  i = malloc(sizeof *i);
  i->key = key;
  i->value = value;
  i->in_bucket = *bucket;
  *bucket = i;
  RB_INSERT(tree, &s->tree, i);
  TAILQ_INSERT_TAIL(&s->queue, i, in_queue);
  ++s->count;
}

static void drop(struct store* s, struct item* i) {
  struct item** at = bucket_of(s, i->key);
  while (*at != i) at = &(*at)->in_bucket;
  *at = i->in_bucket;
  RB_REMOVE(tree, &s->tree, i);
  TAILQ_REMOVE(&s->queue, i, in_queue);
  --s->count;
  free(i);
}

STORE_CALL int store_remove(struct store* s, uint64_t key) {
  struct item* const i = find(s, key);
  if (i == NULL) return 0;
  drop(s, i);
  return 1;
}

STORE_CALL uint64_t store_pop(struct store* s) {
  struct item* const i = TAILQ_FIRST(&s->queue);
  const uint64_t key = i == NULL ? 0 : i->key;
  if (i != NULL) drop(s, i);
  return key;
}

STORE_CALL uint64_t store_get(struct store* s, uint64_t key) {
  const struct item* const i = find(s, key);
  return i == NULL ? 0 : i->value;
}

STORE_CALL uint64_t store_sum(struct store* s) {
  uint64_t sum = 0;
  struct item* i;
  RB_FOREACH(i, tree, &s->tree) sum += i->value;
  return sum;
}
