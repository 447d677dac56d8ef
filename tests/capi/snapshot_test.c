/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots from C: what a snapshot's body reads while the pool changes, what it refuses, when it
 * expires, and a handle that outlives its pool.
 */
#include "check.h"

#include <sys/wait.h>

enum { words = 1 << 15 };
struct root {
  uint64_t count;
  uint64_t word[words];
};

static int add(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  const uint64_t value = perdure_read_word(tx, &root->count) + *(uint64_t*)arg;
  return perdure_write_word(tx, &root->count, value);
}

/* Changes more lines than 64 KiB of snapshot memory can hold. */
static int fill(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  int i;
  for (i = 0; i < words; i += 8) perdure_write_word(tx, &root->word[i], *(uint64_t*)arg);
  return 0;
}

static int look(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  *(uint64_t*)arg = perdure_read_word(tx, &root->count);
  return 0;
}

static int stop(perdure_tx* tx, void* arg) {
  (void)tx;
  (void)arg;
  return 5;
}

static int outside(perdure_tx* tx, void* arg) {
  uint64_t word;
  return perdure_read(tx, &word, arg, sizeof word);
}

static int only_reads(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  (void)arg;
  CHECK_CODE(perdure_write_word(tx, &root->count, 1), PERDURE_READ_ONLY);
  CHECK(perdure_alloc(tx, 16) == NULL);
  CHECK_CODE(perdure_status(tx), PERDURE_READ_ONLY);
  return 0;
}

/* Transactions inside a snapshot's body are their own. */
static int beside(perdure_tx* tx, void* arg) {
  perdure_pool* pool = perdure_pool_of(tx);
  uint64_t one = 1, before, after, now;
  perdure_id id;
  perdure_snapshot* newer;
  (void)arg;
  CHECK_CODE(look(tx, &before), 0);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add, &one, &id), PERDURE_OK);
  CHECK(id != PERDURE_NO_ID);
  CHECK_CODE(perdure_wait(pool, id), PERDURE_OK);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &now), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &newer), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_view(newer, look, &after), PERDURE_OK);
  CHECK(now > before && after == now);
  perdure_snapshot_close(newer);
  CHECK_CODE(look(tx, &after), 0);
  CHECK(after == before);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_checkpoint(pool), PERDURE_OK);
  return 0;
}

static int opens_one(perdure_tx* tx, void* arg) {
  perdure_snapshot* snapshot = arg;
  CHECK_CODE(perdure_snapshot_open(perdure_pool_of(tx), PERDURE_DEFAULT, &snapshot),
             PERDURE_INVALID);
  CHECK(snapshot == NULL);
  return 0;
}

static void in_a_child(perdure_pool* pool, perdure_snapshot* snapshot) {
  int status;
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    perdure_snapshot* made = snapshot;
    uint64_t found = 99;
    CHECK_CODE(perdure_snapshot_view(snapshot, look, &found), PERDURE_CLOSED);
    CHECK(found == 99);
    CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &made), PERDURE_CLOSED);
    CHECK(made == NULL);
    perdure_snapshot_close(snapshot);
    CHECK_CODE(perdure_close(pool, NULL), PERDURE_CLOSED);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The copy is the snapshot's state, whatever has been changed since. */
static void is_copied(perdure_snapshot* snapshot, const char* path, const char* medium) {
  perdure_options options = small(NULL, medium, sizeof(struct root));
  perdure_pool* pool;
  perdure_stats stats;
  uint64_t found = 0, expected = 0;
  int status;
  pid_t child;
  CHECK_CODE(perdure_snapshot_view(snapshot, look, &expected), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_copy(snapshot, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_snapshot_copy(snapshot, path), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_copy(snapshot, path), PERDURE_EXISTS);
  child = fork(); /* its address is the pool's */
  CHECK(child >= 0);
  if (child == 0) {
    CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
    CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &found), PERDURE_OK);
    CHECK(found == expected);
    CHECK_CODE(perdure_get_stats(pool, &stats), PERDURE_OK);
    CHECK(stats.was_clean == 1 && stats.last_id == perdure_snapshot_id(snapshot));
    CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  unlink(path);
}

static void on_engine(const char* engine, const char* medium) {
  perdure_options options = small(engine, medium, sizeof(struct root));
  perdure_pool* pool;
  perdure_snapshot *first, *second;
  uint64_t one = 1, found = 0, i;
  perdure_id last = 0;
  char path[128];
  strcpy(path, scratch("pool"));
  unlink(path);
  options.snapshot_memory = 1000;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_INVALID);
  options.snapshot_memory = 64 << 10;
  options.log_size = 4 << 20;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  for (i = 0; i < 10; i++)
    CHECK_CODE(perdure_update(pool, PERDURE_ASYNC, add, &one, &last), PERDURE_OK);

  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DURABLE, &first), PERDURE_OK);
  CHECK(perdure_snapshot_id(first) == last && perdure_is_durable(pool, last));
  for (i = 0; i < 10; i++)
    CHECK_CODE(perdure_update(pool, PERDURE_ASYNC, add, &one, &last), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &second), PERDURE_OK);
  CHECK(perdure_snapshot_id(second) == last);
  CHECK_CODE(perdure_snapshot_view(first, look, &found), PERDURE_OK);
  CHECK(found == 10);
  CHECK_CODE(perdure_snapshot_view(second, look, &found), PERDURE_OK);
  CHECK(found == 20);
  CHECK_CODE(perdure_snapshot_view(first, beside, NULL), PERDURE_OK);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &found), PERDURE_OK);
  CHECK(found == 21);

  CHECK_CODE(perdure_snapshot_view(first, stop, NULL), PERDURE_ABORTED);
  CHECK_CODE(perdure_snapshot_view(first, only_reads, NULL), PERDURE_READ_ONLY);
  CHECK_CODE(perdure_snapshot_view(first, outside, &one), PERDURE_INVALID);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, opens_one, first, NULL), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, NULL), PERDURE_INVALID);
  in_a_child(pool, second);
  strcpy(path, scratch("copy"));
  is_copied(first, path, medium);

  /* The oldest expires, and then the other one. */
  CHECK(!perdure_snapshot_expired(first));
  for (i = 0; i < 4; i++)
    CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, fill, &i, NULL), PERDURE_OK);
  CHECK(perdure_snapshot_expired(first) && perdure_snapshot_expired(second));
  CHECK_CODE(perdure_snapshot_view(first, look, &found), PERDURE_EXPIRED);
  perdure_snapshot_close(first);
  perdure_snapshot_close(second);
  perdure_snapshot_close(NULL);

  /* A handle outlives the pool. */
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &first), PERDURE_OK);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  CHECK(perdure_snapshot_expired(first));
  CHECK_CODE(perdure_snapshot_view(first, look, &found), PERDURE_CLOSED);
  perdure_snapshot_close(first);
  printf("%s on %s: right\n", engine, medium);
}

int main(void) {
  const char* const with[] = {"shadow", "shadow/stm", "shadow/global_lock"};
  perdure_options options = small("undo", "emulated", sizeof(struct root));
  perdure_snapshot* snapshot;
  perdure_pool* pool;
  size_t i;
  for (i = 0; i < sizeof with / sizeof *with; i++) {
    on_engine(with[i], "emulated");
    on_engine(with[i], "file");
  }
  CHECK_CODE(perdure_open(scratch("undo"), &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &snapshot), PERDURE_UNSUPPORTED);
  CHECK(snapshot == NULL);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  scratch(NULL);
  return 0;
}
