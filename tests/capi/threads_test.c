/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that end, from C: 300 one after another, whose thread-specific data use a pool in their
 * destructors, in each round that the C library gives them; and the same in a process that has no
 * pthread key left for the library. No thread is refused.
 */
#define _GNU_SOURCE
#include "check.h"
#include "counter.h"

#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>

static perdure_pool* pool;
static pthread_key_t early, late; /* made before the library has made its own, and after */

static void use(void) {
  CHECK_CODE(perdure_update(pool, PERDURE_DURABLE, add, NULL, NULL), PERDURE_OK);
}
static uint64_t count(void) {
  uint64_t found = 0;
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &found), PERDURE_OK);
  return found;
}

/* A value is the number of remaining rounds. */
static void again(pthread_key_t key, void* left) {
  use();
  if ((intptr_t)left > 1) CHECK(pthread_setspecific(key, (void*)((intptr_t)left - 1)) == 0);
}
static void at_end_early(void* left) { again(early, left); }
static void at_end_late(void* left) { again(late, left); }

struct plan {
  int uses_before, early, late;
};
static void* run(void* arg) {
  const struct plan* plan = arg;
  if (plan->early != 0) CHECK(pthread_setspecific(early, (void*)(intptr_t)plan->early) == 0);
  if (plan->late != 0) CHECK(pthread_setspecific(late, (void*)(intptr_t)plan->late) == 0);
  if (plan->uses_before) use();
  return NULL;
}
static void in_turn(struct plan plan) {
  const uint64_t before = count(), uses = (uint64_t)(plan.uses_before + plan.early + plan.late);
  for (int i = 0; i < 300; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, &plan) == 0 && pthread_join(thread, NULL) == 0);
  }
  CHECK(count() == before + 300 * uses);
}

/* ThreadSanitizer ends its own part of a thread in the last round: no code that it instruments
 * may run after that. */
#if defined(__SANITIZE_THREAD__)
enum { max_rounds = 2 };
#else
enum { max_rounds = PTHREAD_DESTRUCTOR_ITERATIONS };
#endif

static void open_pool(const char* name) {
  const perdure_options options = small("shadow", "emulated", sizeof(struct root));
  CHECK_CODE(perdure_open(scratch(name), &options, &pool), PERDURE_OK);
}

/* In a child process, which uses up the keys before its first call of the library. */
static void without_keys(void) {
  pthread_key_t key;
  while (pthread_key_create(&key, NULL) == 0) {}
  open_pool("without");
  in_turn((struct plan){1, 0, 0});
  in_turn((struct plan){1, max_rounds, 1});
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
}

int main(void) {
  int status = -1;
  pid_t child;
  CHECK(strcmp(perdure_code_name(PERDURE_TOO_MANY_THREADS), "too_many_threads") == 0);
  scratch("");
  CHECK(pthread_key_create(&early, at_end_early) == 0);
  fflush(NULL);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(50);
    CHECK(pthread_key_create(&late, at_end_late) == 0);
    without_keys();
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);

  open_pool("pool");
  CHECK(pthread_key_create(&late, at_end_late) == 0);
  for (int uses_before = 0; uses_before < 2; uses_before++)
    for (int first = 0; first <= max_rounds; first += 2)
      for (int second = 0; second <= max_rounds; second += 2)
        in_turn((struct plan){uses_before, first, second});
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  scratch(NULL);
  return 0;
}
