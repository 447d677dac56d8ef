/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure.h and fork(): an inherited handle gives PERDURE_CLOSED and changes nothing; a child
 * opens the parent's pool once the parent has closed it or has ended, and other pools at any time.
 */
#define _GNU_SOURCE
#include "check.h"
#include "counter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void never(int code, void* arg) {
  (void)code;
  (void)arg;
  exit(1);
}

static const char* path;
static perdure_options options;

static perdure_pool* open_pool(void) {
  perdure_pool* pool = NULL;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  return pool;
}
static void add_and_close(perdure_pool* pool) {
  CHECK_CODE(perdure_update(pool, PERDURE_DURABLE, add, NULL, NULL), PERDURE_OK);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
}
static void use_in_child(uint64_t expected) {
  uint64_t found = 99;
  perdure_pool* const own = open_pool();
  CHECK_CODE(perdure_view(own, PERDURE_DEFAULT, look, &found), PERDURE_OK);
  CHECK(found == expected);
  add_and_close(own);
}

/* A child that hangs is killed after 50 s. */
static pid_t fork_child(void) {
  pid_t child;
  fflush(NULL);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) alarm(50);
  return child;
}
static void check_end(pid_t child) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  if (status != 0) fprintf(stderr, "the child's status is %d\n", status);
  CHECK(status == 0);
}
static void wait_until_closed(const int ends[2]) {
  char none;
  close(ends[1]);
  CHECK(read(ends[0], &none, 1) == 0);
}

static void inherited_handles(void) {
  perdure_pool *pool = open_pool(), *other = (perdure_pool*)1;
  perdure_stats stats;
  perdure_id id;
  pid_t child;
  CHECK_CODE(perdure_update(pool, PERDURE_DURABLE, add, NULL, &id), PERDURE_OK);
  child = fork_child();
  if (child == 0) {
    uint64_t found = 99;
    CHECK_CODE(perdure_update(pool, PERDURE_DURABLE, add, NULL, NULL), PERDURE_CLOSED);
    CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &found), PERDURE_CLOSED);
    CHECK(strstr(perdure_message(), "fork()") != NULL);
    CHECK_CODE(perdure_get_stats(pool, &stats), PERDURE_CLOSED);
    CHECK_CODE(perdure_checkpoint(pool), PERDURE_CLOSED);
    CHECK_CODE(perdure_trim(pool, 0, NULL, NULL), PERDURE_CLOSED);
    CHECK_CODE(perdure_wait(pool, id), PERDURE_CLOSED);
    CHECK_CODE(perdure_when_durable(pool, id, never, NULL), PERDURE_CLOSED);
    CHECK(perdure_is_durable(pool, id) == 0 && perdure_durable_id(pool) == 0 &&
          perdure_address(pool, 1 << 20) == NULL);
    CHECK_CODE(perdure_open(path, &options, &other), PERDURE_BUSY);
    CHECK(other == NULL && strstr(perdure_message(), "process ") != NULL);
    CHECK_CODE(perdure_close(pool, &stats), PERDURE_CLOSED);
    CHECK_CODE(perdure_open(path, &options, &other), PERDURE_BUSY);
    _exit(0);
  }
  check_end(child);
  add_and_close(pool);
}

static void after_the_parent_has_closed(int frees_its_copy) {
  perdure_pool* pool = open_pool();
  int ends[2];
  pid_t child;
  CHECK(pipe(ends) == 0);
  child = fork_child();
  if (child == 0) {
    wait_until_closed(ends);
    if (frees_its_copy) CHECK_CODE(perdure_close(pool, NULL), PERDURE_CLOSED);
    use_in_child(2);
    if (!frees_its_copy) CHECK_CODE(perdure_close(pool, NULL), PERDURE_CLOSED);
    use_in_child(3);
    _exit(0);
  }
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  close(ends[1]);
  check_end(child);
  close(ends[0]);
  use_in_child(4); /* here in the parent: everything is present */
}

static void after_the_parent_has_ended(void) {
  int ends[2], report[2];
  char whole = 0;
  pid_t parent;
  CHECK(pipe(ends) == 0 && pipe(report) == 0);
  parent = fork_child();
  if (parent == 0) {
    perdure_pool* pool = open_pool();
    CHECK_CODE(perdure_update(pool, PERDURE_DURABLE, add, NULL, NULL), PERDURE_OK);
    if (fork_child() == 0) {
      wait_until_closed(ends);
      use_in_child(3); /* recovers what its parent left open */
      _exit(write(report[1], "y", 1) == 1 ? 0 : 1);
    }
    _exit(0);
  }
  close(report[1]);
  close(ends[1]);
  check_end(parent);
  CHECK(read(report[0], &whole, 1) == 1 && whole == 'y');
  close(ends[0]);
  close(report[0]);
}

int main(void) {
  static const char* const engines[] = {"shadow", "undo"};
  for (int i = 0; i < 2; i++) {
    char name[32];
    snprintf(name, sizeof name, "pool%d", i);
    options = small(engines[i], "emulated", sizeof(struct root));
    path = strdup(scratch(name));
    inherited_handles();
    for (int frees = 0; frees < 2; frees++) {
      after_the_parent_has_closed(frees);
      CHECK(unlink(path) == 0);
      if (frees == 0) {
        add_and_close(open_pool());
        add_and_close(open_pool());
      }
    }
    add_and_close(open_pool());
    add_and_close(open_pool());
    after_the_parent_has_ended();
    free((char*)path);
  }
  scratch(NULL);
  return 0;
}
