/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that is recorded, for cli_advise_test.py: advised_program POOL THREADS TRANSACTIONS
 * [fail]. Each thread moves amounts between accounts: an update reads and writes two words, every
 * fourth also changes its thread's note for a new one of 100 bytes; after every other update comes
 * a view of all 32 accounts. All threads wait for each other before the second and before the last
 * transaction, so that they overlap. With `fail` it exits with 7 at the end.
 */
#define _GNU_SOURCE
#include <perdure.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct root {
  uint64_t accounts[32];
  void* notes[32];
};

static perdure_pool* pool;
static uint64_t transactions;
static pthread_barrier_t together;

struct move {
  uint64_t thread, i;
};

static int transfer(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  const struct move* m = arg;
  uint64_t *from = &root->accounts[m->i * 7 % 32], *to = &root->accounts[(m->i * 7 + 11) % 32];
  perdure_write_word(tx, from, perdure_read_word(tx, from) - 1);
  perdure_write_word(tx, to, perdure_read_word(tx, to) + 1);
  if (m->i % 4 == 0) {
    char text[100] = "the contents of a note, which no trace may hold";
    void* note = perdure_alloc(tx, sizeof text);
    perdure_write(tx, note, text, sizeof text);
    perdure_free(tx, perdure_read_pointer(tx, &root->notes[m->thread]));
    perdure_write_pointer(tx, &root->notes[m->thread], note);
  }
  return 0;
}

static int sum(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  uint64_t all[32], i;
  if (perdure_read(tx, all, root->accounts, sizeof all) != PERDURE_OK) return 0;
  for (*(uint64_t*)arg = 0, i = 0; i < 32; i++) *(uint64_t*)arg += all[i];
  return 0;
}

static void* work(void* arg) {
  struct move m = {(uint64_t)(size_t)arg, 0};
  uint64_t total = 1;
  for (; m.i < transactions; m.i++) {
    if (m.i == 1 || m.i + 1 == transactions) pthread_barrier_wait(&together);
    if (perdure_update(pool, PERDURE_DEFAULT, transfer, &m, NULL) != PERDURE_OK) abort();
    if (m.i % 2 == 0 &&
        (perdure_view(pool, PERDURE_DEFAULT, sum, &total) != PERDURE_OK || total != 0))
      abort();
  }
  return NULL;
}

int main(int argc, char** argv) {
  perdure_options options = {.root_bytes = sizeof(struct root),
                             .medium = "emulated",
                             .max_size = 1 << 30,
                             .log_size = 4 << 20};
  pthread_t threads[32];
  size_t n, i;
  if (argc < 4) return 2;
  n = (size_t)atoi(argv[2]);
  transactions = (uint64_t)atoi(argv[3]);
  if (perdure_open(argv[1], &options, &pool) != PERDURE_OK)
    return fprintf(stderr, "%s\n", perdure_message()), 3;
  if (n != 0 && pthread_barrier_init(&together, NULL, (unsigned)n) != 0) return 3;
  for (i = 0; i < n; i++)
    if (pthread_create(&threads[i], NULL, work, (void*)i) != 0) return 3;
  for (i = 0; i < n; i++) pthread_join(threads[i], NULL);
  puts("done");
  if (perdure_close(pool, NULL) != PERDURE_OK) return 3;
  return argc > 4 ? 7 : 0;
}
