/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codes and messages of perdure.h: each refusal has its code, names what was found, and leaves the
 * pool as it was.
 */
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <sys/wait.h>

static int nothing(perdure_tx* tx, void* arg) {
  (void)arg;
  return perdure_status(tx);
}
static int set_word(perdure_tx* tx, void* arg) {
  return perdure_write_word(tx, perdure_root(tx), *(uint64_t*)arg);
}
static int get_word(perdure_tx* tx, void* arg) {
  *(uint64_t*)arg = perdure_read_word(tx, perdure_root(tx));
  return perdure_status(tx);
}

/* Each body makes one error, gets the code, and gets it again from later calls. */
static int write_outside(perdure_tx* tx, void* arg) {
  uint64_t local = 0, word = 5;
  (void)arg;
  CHECK_CODE(perdure_write_word(tx, perdure_root(tx), 77), PERDURE_OK);
  CHECK_CODE(perdure_write(tx, &local, &word, sizeof word), PERDURE_INVALID);
  CHECK(strstr(perdure_message(), "outside the pool") != NULL);
  CHECK_CODE(perdure_status(tx), PERDURE_INVALID);
  word = 5;
  CHECK_CODE(perdure_read(tx, &word, perdure_root(tx), sizeof word), PERDURE_INVALID);
  CHECK(word == 0);
  CHECK(perdure_alloc(tx, 16) == NULL && perdure_read_word(tx, perdure_root(tx)) == 0);
  return 0; /* the body reports success, but the transaction has failed */
}
static int write_misaligned(perdure_tx* tx, void* arg) {
  (void)arg;
  CHECK_CODE(perdure_write_word(tx, (char*)perdure_root(tx) + 4, 1), PERDURE_INVALID);
  return 0;
}
static int write_heap_structures(perdure_tx* tx, void* arg) {
  (void)arg;
  CHECK_CODE(perdure_write_word(tx, perdure_address(perdure_pool_of(tx), 4096), 1),
             PERDURE_INVALID);
  return 0;
}
static int free_twice(perdure_tx* tx, void* arg) {
  void* block = perdure_alloc(tx, 100);
  (void)arg;
  CHECK_CODE(perdure_free(tx, NULL), PERDURE_OK);
  CHECK_CODE(perdure_free(tx, block), PERDURE_OK);
  CHECK_CODE(perdure_free(tx, block), PERDURE_INVALID);
  return 0;
}
static int free_nonsense(perdure_tx* tx, void* arg) {
  char* block = perdure_alloc(tx, 100);
  (void)arg;
  CHECK_CODE(perdure_free(tx, block + 8), PERDURE_INVALID);
  return 0;
}
static int alloc_too_much(perdure_tx* tx, void* arg) {
  (void)arg;
  CHECK(perdure_alloc(tx, (size_t)1 << 40) == NULL);
  CHECK_CODE(perdure_status(tx), PERDURE_FULL);
  return 0;
}
static int log_too_much(perdure_tx* tx, void* arg) {
  static char bytes[1 << 20];
  int i;
  (void)arg;
  for (i = 0; i < 64; i++) {
    void* block = perdure_alloc(tx, sizeof bytes);
    if (perdure_write(tx, block, bytes, sizeof bytes) != PERDURE_OK) return 1;
  }
  return 0;
}
static int write_in_view(perdure_tx* tx, void* arg) {
  uint64_t one = 1;
  CHECK_CODE(perdure_update(perdure_pool_of(tx), PERDURE_DEFAULT, set_word, &one, NULL),
             PERDURE_INVALID);
  CHECK_CODE(perdure_status(tx), PERDURE_OK);
  (void)arg;
  CHECK_CODE(perdure_write_word(tx, perdure_root(tx), 1), PERDURE_READ_ONLY);
  return 0;
}

static void bodies(perdure_pool* pool) {
  uint64_t value = 42, seen = 0;
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, set_word, &value, NULL), PERDURE_OK);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, write_outside, NULL, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, write_misaligned, NULL, NULL), PERDURE_INVALID);
  CHECK(strstr(perdure_message(), "multiple of 8") != NULL);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, write_heap_structures, NULL, NULL),
             PERDURE_INVALID);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, free_twice, NULL, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, free_nonsense, NULL, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, alloc_too_much, NULL, NULL), PERDURE_FULL);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, log_too_much, NULL, NULL), PERDURE_TOO_BIG);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, write_in_view, NULL), PERDURE_READ_ONLY);
  CHECK_CODE(perdure_update(pool, (perdure_durability)9, set_word, &value, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, get_word, &seen), PERDURE_OK);
  CHECK(seen == 42);
}

/* A forked child has the parent's handle and gets PERDURE_CLOSED; the parent continues. */
static void fork_with(perdure_pool* pool) {
  uint64_t value = 43, seen = 0;
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (perdure_update(pool, PERDURE_DEFAULT, set_word, &seen, NULL) != PERDURE_CLOSED) _exit(1);
    if (perdure_view(pool, PERDURE_DEFAULT, nothing, NULL) != PERDURE_CLOSED) _exit(2);
    if (strstr(perdure_message(), "fork") == NULL) _exit(3);
    if (perdure_close(pool, NULL) != PERDURE_CLOSED) _exit(4);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, set_word, &value, NULL), PERDURE_OK);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, get_word, &seen), PERDURE_OK);
  CHECK(seen == 43);
}

static void openings(const char* path) {
  perdure_options options = small("shadow", "file", 64), other;
  perdure_pool *pool, *second;
  char junk[128];
  FILE* file;

  CHECK_CODE(perdure_open(NULL, NULL, &pool), PERDURE_INVALID);
  CHECK_CODE(perdure_open(path, NULL, NULL), PERDURE_INVALID);
  other = options;
  other.flags = PERDURE_NO_CREATE;
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_NOT_FOUND);
  CHECK(pool == NULL && strstr(perdure_message(), path) != NULL);
  other.flags = 1 << 20;
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INVALID);
  other = options;
  other.engine = "steam";
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INCOMPATIBLE);
  CHECK(strstr(perdure_message(), "steam") != NULL && strstr(perdure_message(), "shadow") != NULL);
  other = options;
  other.medium = "paper";
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INVALID);
  other = options;
  other.delays = "snail";
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INVALID);
  other = options;
  other.durability = (perdure_durability)77;
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INVALID);
  CHECK(access(path, F_OK) != 0); /* none of these made a file */

  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_open(path, &options, &second), PERDURE_BUSY);
  CHECK(second == NULL);
  bodies(pool);
  fork_with(pool);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  CHECK_CODE(perdure_close(NULL, NULL), PERDURE_OK);

  other = options;
  other.flags = PERDURE_MUST_CREATE;
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_EXISTS);
  other = options;
  other.layout = "test/2";
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INCOMPATIBLE);
  CHECK(strstr(perdure_message(), "test/1") != NULL && strstr(perdure_message(), "test/2") != NULL);
  other = options;
  other.root_bytes = 128;
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INCOMPATIBLE);
  other = options;
  other.engine = "dudetm";
  CHECK_CODE(perdure_open(path, &other, &pool), PERDURE_INCOMPATIBLE);

  strcpy(junk, scratch("junk"));
  file = fopen(junk, "w");
  CHECK(file != NULL && fputs("no pool", file) >= 0 && fclose(file) == 0);
  CHECK_CODE(perdure_open(junk, &options, &pool), PERDURE_INCOMPATIBLE);
}

int main(void) {
  const char* const engines[] = {"shadow", "dudetm", "undo", "volatile", "shadow/stm"};
  const perdure_durability modes[] = {PERDURE_DURABLE, PERDURE_GROUP, PERDURE_ASYNC};
  char path[128];
  size_t i, j;
  CHECK(strcmp(perdure_code_name(PERDURE_TOO_BIG), "too_big") == 0 &&
        strcmp(perdure_code_name(PERDURE_AGAIN), "again") == 0);
  CHECK(strcmp(perdure_code_name(PERDURE_TOO_MANY_THREADS), "too_many_threads") == 0);
  CHECK(strcmp(perdure_code_name(99), "unknown") == 0 &&
        strcmp(perdure_code_name(-50), "unknown") == 0);
  strcpy(path, scratch("refused"));
  openings(path);
  for (i = 0; i < sizeof engines / sizeof *engines; i++)
    for (j = 0; j < 3; j++) {
      perdure_options options = small(engines[i], "emulated", 64);
      perdure_pool* pool;
      options.durability = modes[j];
      unlink(path);
      CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
      if (strcmp(engines[i], "volatile") != 0) bodies(pool);
      fork_with(pool);
      CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
    }
  scratch(NULL);
  return 0;
}
