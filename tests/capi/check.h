/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the C tests: a check that ends the program, a new file name, the engines that promise
 * durability. POSIX and C11 only.
 */
#ifndef PERDURE_TESTS_CAPI_CHECK_H
#define PERDURE_TESTS_CAPI_CHECK_H

#include <perdure.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "%s:%d: not so: %s\n  perdure_message(): %s\n", __FILE__, __LINE__, \
              #condition, perdure_message());                                             \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)

#define CHECK_CODE(expression, expected)                                                       \
  do {                                                                                         \
    const int found_ = (expression);                                                           \
    if (found_ != (expected)) {                                                                \
      fprintf(stderr, "%s:%d: %s: found %s, expected %s\n  perdure_message(): %s\n", __FILE__, \
              __LINE__, #expression, perdure_code_name(found_), perdure_code_name(expected),   \
              perdure_message());                                                              \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* A folder of this process, removed by the last call (NULL); in memory if there is a tmpfs, because
 * basics_test alone syncs 24,000 times. */
static inline const char* scratch(const char* name) {
  static char folder[64], path[128];
  if (folder[0] == '\0') {
    strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/perdure-capi-XXXXXX"
                                                 : "/tmp/perdure-capi-XXXXXX");
    if (mkdtemp(folder) == NULL) exit(1);
  }
  if (name == NULL) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) exit(1);
    return NULL;
  }
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

void perdure_test_watch_again(void); /* tests/support/watchdog.hpp: the limit begins again */

/* Small pools, so that a test that makes many of them is quick. The time limit begins again for
 * each. */
static inline perdure_options small(const char* engine, const char* medium, uint64_t root_bytes) {
  perdure_test_watch_again();
  perdure_options o = {0};
  o.root_bytes = root_bytes;
  o.layout = "test/1";
  o.engine = engine;
  o.medium = medium;
  o.max_size = 256 << 20;
  o.log_size = 4 << 20;
  return o;
}

static inline int starts_with(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

#endif
