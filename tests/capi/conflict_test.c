/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bodies that run again: PERDURE_AGAIN reaches the body and never the caller of perdure_update(),
 * and no update is lost.
 */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>

struct root {
  uint64_t a;
  char apart[192]; /* another stripe */
  uint64_t b;
  char apart2[192];
  uint64_t runs;
};

static perdure_pool* pool;

static int add_to_both(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  const uint64_t n = *(uint64_t*)arg;
  perdure_write_word(tx, &root->a, perdure_read_word(tx, &root->a) + n);
  perdure_write_word(tx, &root->b, perdure_read_word(tx, &root->b) + n);
  return 0;
}
static void* another_thread(void* arg) {
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add_to_both, arg, NULL), PERDURE_OK);
  return NULL;
}
static void meanwhile(
    /* Waiting for another transaction is safe in this test alone: nothing here is locked yet,
     * and the TM is not biased. */
    void) {
  uint64_t ten = 10;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, another_thread, &ten) == 0 &&
        pthread_join(thread, NULL) == 0);
}

struct seen {
  int runs, again;
};

/* Reads a, lets another thread change a and b, and reads b: the two are not of one state. */
static int torn(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  struct seen* seen = arg;
  uint64_t a, b = 99;
  const int first = seen->runs++ == 0;
  perdure_write_word(tx, &root->runs, 1);
  a = perdure_read_word(tx, &root->a);
  if (first) meanwhile();
  switch (perdure_read(tx, &b, &root->b, sizeof b)) {
    case PERDURE_OK: CHECK(a == b); break;
    case PERDURE_AGAIN:
      seen->again++;
      CHECK(b == 0 && perdure_status(tx) == PERDURE_AGAIN);
      CHECK_CODE(perdure_write_word(tx, &root->runs, 2), PERDURE_AGAIN);
      CHECK(perdure_alloc(tx, 64) == NULL);
      break;
    default: CHECK(!"another code");
  }
  return 5 * (first != 0); /* "roll back": but the conflict was first */
}

/* Reads a, lets another thread change it, and writes: the commit fails, and the body is not
 * notified. */
static int overtaken(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  struct seen* seen = arg;
  const uint64_t a = perdure_read_word(tx, &root->a);
  if (seen->runs++ == 0) meanwhile();
  CHECK_CODE(perdure_write_word(tx, &root->runs, a), PERDURE_OK);
  return 0;
}

static int get(perdure_tx* tx, void* arg) {
  return perdure_read(tx, arg, perdure_root(tx), sizeof(struct root));
}

enum { rounds = 3000 };
static void* hammer(void* arg) {
  uint64_t one = 1, i;
  (void)arg;
  for (i = 0; i < rounds; i++)
    CHECK_CODE(perdure_update(pool, i % 64 == 0 ? PERDURE_DURABLE : PERDURE_ASYNC, add_to_both,
                              &one, NULL),
               PERDURE_OK);
  return NULL;
}

static void on_engine(const char* engine) {
  perdure_options options = small(engine, "emulated", sizeof(struct root));
  struct root root;
  struct seen seen = {0, 0};
  perdure_stats stats;
  pthread_t threads[4];
  int i;
  char path[128];
  strcpy(path, scratch("conflict"));
  unlink(path);
  i = perdure_open(path, &options, &pool);
  if (i == PERDURE_UNSUPPORTED && strstr(engine, "/htm") != NULL) {
    printf("%s: left out: %s\n", engine, perdure_message());
    return;
  }
  CHECK_CODE(i, PERDURE_OK);
  if (strstr(engine, "/stm") != NULL) {
    CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, torn, &seen, NULL), PERDURE_OK);
    CHECK(seen.runs == 2 && seen.again == 1);
    seen.runs = 0;
    CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, overtaken, &seen, NULL), PERDURE_OK);
    CHECK(seen.runs == 2);
    CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, get, &root), PERDURE_OK);
    CHECK(root.a == 20 && root.b == 20 && root.runs == 20);
    CHECK_CODE(perdure_get_stats(pool, &stats), PERDURE_OK);
    CHECK(stats.restarts == 2);
  }
  for (i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
  for (i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, get, &root), PERDURE_OK);
  CHECK(root.a == root.b && root.a == 4 * rounds + (strstr(engine, "/stm") != NULL ? 20 : 0));
  CHECK_CODE(perdure_close(pool, &stats), PERDURE_OK);
  printf("%s: %llu restarts\n", engine, (unsigned long long)stats.restarts);
  if (starts_with(engine, "volatile")) return;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  memset(&root, 0, sizeof root);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, get, &root), PERDURE_OK);
  CHECK(root.a == root.b && root.a == 4 * rounds + (strstr(engine, "/stm") != NULL ? 20 : 0));
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
}

int main(void) {
  const char* engine;
  size_t n;
  for (n = 0; (engine = perdure_engine_at(n)) != NULL; n++)
    if (strstr(engine, "none") == NULL) on_engine(engine);
  scratch(NULL);
  return 0;
}
