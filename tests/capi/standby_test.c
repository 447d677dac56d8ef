/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replicated pools from C: a primary and, in a child process, a standby over a log in a folder:
 * levels, what is known of both, reads, promotion, and what is refused.
 */
#include "check.h"

#include <sys/wait.h>

struct root {
  uint64_t count;
};

static int add(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  (void)arg;
  return perdure_write_word(tx, &root->count, perdure_read_word(tx, &root->count) + 1);
}
static int look(perdure_tx* tx, void* arg) {
  const struct root* root = perdure_root(tx);
  *(uint64_t*)arg = perdure_read_word(tx, &root->count);
  return 0;
}
static uint64_t count_in(perdure_pool* pool) {
  uint64_t count = 0;
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &count), PERDURE_OK);
  return count;
}

static char folder[] = "/tmp/perdure-capi-XXXXXX";
static char stream[64], backups[64], first[64], second[64];

static perdure_options replicated(const char* name) {
  perdure_options o = {0};
  o.root_bytes = sizeof(struct root);
  o.layout = "test/1";
  o.max_size = 256 << 20;
  o.log_size = 4 << 20;
  o.replicate = stream;
  o.replicate_as = name;
  o.replicate_patience = 60000;
  return o;
}

/* Of a pipe whose other end is another process: the word, or the end of this one. */
static uint64_t word_from(int fd) {
  uint64_t word = 0;
  CHECK(read(fd, &word, sizeof word) == sizeof word);
  return word;
}
static void tell(int fd, uint64_t word) { CHECK(write(fd, &word, sizeof word) == sizeof word); }

static int told_fd;
static void told(int code, void* arg) {
  (void)arg;
  tell(told_fd, (uint64_t)code);
}

static int of_standby(perdure_tx* tx, void* standby) {
  (void)tx;
  CHECK_CODE(perdure_standby_close(standby), PERDURE_INVALID);
  return 0;
}

/* A process that has inherited a standby. */
static void check_inherited(perdure_standby* standby) {
  const pid_t child = fork();
  int status = 0;
  CHECK(child >= 0);
  if (child == 0) {
    perdure_standby_status s;
    CHECK(perdure_standby_pool(standby) == NULL);
    CHECK_CODE(perdure_standby_get_status(standby, &s), PERDURE_CLOSED);
    CHECK_CODE(perdure_standby_catch_up(standby, 1), PERDURE_CLOSED);
    CHECK_CODE(perdure_standby_took_over(standby, 1), PERDURE_CLOSED);
    CHECK_CODE(perdure_standby_close(standby), PERDURE_CLOSED);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* The process of the standby, which becomes the primary. */
static void follow(int from, int to) {
  perdure_options options = replicated("second");
  perdure_standby* standby;
  perdure_standby_status status;
  perdure_pool* pool;
  uint64_t id = word_from(from); /* there is a backup */
  CHECK_CODE(perdure_standby_open(second, &options, NULL, 0, &standby), PERDURE_NOT_FOUND);
  CHECK(standby == NULL);
  options.flags = PERDURE_OPEN_READ_ONLY;
  CHECK_CODE(perdure_standby_open(second, &options, backups, 0, &standby), PERDURE_INVALID);
  options.flags = 0;
  options.replicate = NULL;
  CHECK_CODE(perdure_standby_open(second, &options, backups, 0, &standby), PERDURE_INVALID);
  CHECK_CODE(perdure_standby_open(NULL, &options, backups, 0, &standby), PERDURE_INVALID);
  CHECK_CODE(perdure_standby_open(second, &options, backups, 0, NULL), PERDURE_INVALID);
  options = replicated("second");
  CHECK_CODE(perdure_standby_open(second, &options, backups, 0, &standby), PERDURE_OK);
  CHECK_CODE(perdure_standby_catch_up(standby, 60000), PERDURE_OK);
  pool = perdure_standby_pool(standby);
  CHECK_CODE(perdure_wait_for_id(pool, id, 60000), PERDURE_OK);
  CHECK(count_in(pool) == 1);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add, NULL, NULL), PERDURE_READ_ONLY);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, of_standby, standby), PERDURE_OK);
  CHECK_CODE(perdure_standby_get_status(standby, &status), PERDURE_OK);
  CHECK(status.follows && status.caught_up && !status.took_over && status.id == id);
  CHECK(status.term == 1 && status.sequence > 0);
  CHECK_CODE(perdure_standby_took_over(standby, 10), PERDURE_EXPIRED);
  check_inherited(standby);
  tell(to, 1);
  id = word_from(from); /* the primary is closed */
  CHECK_CODE(perdure_standby_promote(standby, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_standby_promote(standby, &pool), PERDURE_OK);
  CHECK(count_in(pool) == 12);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add, NULL, &id), PERDURE_OK);
  CHECK_CODE(perdure_wait_level(pool, id, PERDURE_SHIPPED), PERDURE_OK);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  /* what it is now it also is when it is opened again, as a standby */
  CHECK_CODE(perdure_standby_open(second, &options, NULL, 0, &standby), PERDURE_OK);
  CHECK_CODE(perdure_standby_catch_up(standby, 60000), PERDURE_OK);
  CHECK(count_in(perdure_standby_pool(standby)) == 13);
  CHECK_CODE(perdure_standby_close(standby), PERDURE_OK);
  CHECK_CODE(perdure_standby_close(NULL), PERDURE_OK);
}

static void lead(int from, int to) {
  perdure_options options = replicated("first");
  perdure_replication now;
  perdure_snapshot* snapshot;
  perdure_pool* pool;
  perdure_id id;
  int i, ends[2];
  CHECK_CODE(perdure_open(first, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &snapshot), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_backup(snapshot, backups), PERDURE_OK);
  perdure_snapshot_close(snapshot);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add, NULL, &id), PERDURE_OK);
  CHECK_CODE(perdure_wait_level(pool, id, PERDURE_SHIPPED), PERDURE_OK);
  tell(to, id);
  (void)word_from(from);
  for (i = 0; i < 10; ++i) {
    CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add, NULL, &id), PERDURE_OK);
    CHECK_CODE(perdure_wait_level(pool, id, PERDURE_STANDBY), PERDURE_OK);
  }
  CHECK_CODE(perdure_get_replication(pool, &now), PERDURE_OK);
  CHECK(now.primary == 1 && now.term == 1 && now.shipped_id >= id);
  CHECK(now.standby_ids[0] >= id && now.standby_ids[1] == 0);
  CHECK_CODE(perdure_wait_level(pool, id, PERDURE_LOCAL), PERDURE_OK);
  CHECK_CODE(perdure_wait_level(pool, id, PERDURE_QUORUM), PERDURE_UNSUPPORTED);
  CHECK_CODE(perdure_wait_level(pool, id, PERDURE_STANDBY + 16), PERDURE_INVALID);
  CHECK_CODE(perdure_wait_level(pool, id, -1), PERDURE_INVALID);
  CHECK_CODE(perdure_when_level(pool, id, -1, told, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_when_level(pool, PERDURE_NO_ID, PERDURE_LOCAL, told, NULL), PERDURE_INVALID);
  CHECK(pipe(ends) == 0);
  told_fd = ends[1];
  for (i = PERDURE_LOCAL; i <= PERDURE_STANDBY; ++i) {
    if (i == PERDURE_STANDBY)
      CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add, NULL, &id), PERDURE_OK);
    CHECK_CODE(perdure_when_level(pool, id, i, told, NULL), PERDURE_OK);
    CHECK(word_from(ends[0]) == (i == PERDURE_QUORUM ? PERDURE_UNSUPPORTED : PERDURE_OK));
  }
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  tell(to, id);
}

/* Of a pool that is not replicated. */
static void check_alone(void) {
  perdure_options options = replicated(NULL);
  perdure_replication now;
  perdure_pool* pool;
  perdure_id id;
  int ends[2];
  options.replicate = NULL;
  CHECK_CODE(perdure_open(first, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, add, NULL, &id), PERDURE_OK);
  CHECK_CODE(perdure_wait_level(pool, id, PERDURE_SHIPPED), PERDURE_INVALID);
  CHECK_CODE(perdure_wait_level(pool, id, PERDURE_STANDBY), PERDURE_INVALID);
  CHECK(pipe(ends) == 0);
  told_fd = ends[1];
  CHECK_CODE(perdure_when_level(pool, id, PERDURE_STANDBY, told, NULL), PERDURE_OK);
  CHECK(word_from(ends[0]) == PERDURE_INVALID);
  CHECK_CODE(perdure_get_replication(pool, &now), PERDURE_OK);
  CHECK(now.primary == 0 && now.term == 0);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  CHECK(remove(first) == 0);
}

int main(void) {
  int down[2], up[2], status = 0;
  char command[64];
  pid_t child;
  CHECK(mkdtemp(folder) != NULL);
  snprintf(stream, sizeof stream, "%s/stream", folder);
  snprintf(backups, sizeof backups, "%s/backups", folder);
  snprintf(first, sizeof first, "%s/first", folder);
  snprintf(second, sizeof second, "%s/second", folder);
  CHECK(pipe(down) == 0 && pipe(up) == 0);
  /* a process of its own: two copies of a pool have one address */
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(down[1]);
    close(up[0]);
    follow(down[0], up[1]);
    _exit(0);
  }
  close(down[0]);
  close(up[1]);
  check_alone();
  lead(up[0], down[1]);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  CHECK(system(command) == 0);
  return 0;
}
