/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For the tests of `perdure follow`: POOL [ARCHIVE], then on standard input one line for each
 * transaction, TOPIC TEXT, which it emits; it answers each with the transaction's id.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "perdure/perdure.h"

struct said {
  char topic[64], text[256];
};

static int emit(perdure_tx* tx, void* arg) {
  struct said* said = arg;
  uint64_t* root = perdure_root(tx);
  int code = perdure_write_word(tx, root, perdure_read_word(tx, root) + 1);
  if (code != PERDURE_OK) return code;
  return perdure_emit(tx, said->topic, said->text, strlen(said->text), 7);
}

int main(int argc, char** argv) {
  perdure_options options = {0};
  perdure_pool* pool;
  struct said said;
  options.root_bytes = 8;
  options.archive = argc > 2 ? argv[2] : NULL;
  if (argc < 2 || perdure_open(argv[1], &options, &pool) != PERDURE_OK) {
    fprintf(stderr, "%s\n", perdure_message());
    return 1;
  }
  while (scanf("%63s %255s", said.topic, said.text) == 2) {
    perdure_id id;
    if (perdure_update(pool, PERDURE_DURABLE, emit, &said, &id) != PERDURE_OK) {
      fprintf(stderr, "%s\n", perdure_message());
      return 1;
    }
    printf("%llu\n", (unsigned long long)id);
    fflush(stdout);
  }
  return perdure_close(pool, NULL) == PERDURE_OK ? 0 : 1;
}
