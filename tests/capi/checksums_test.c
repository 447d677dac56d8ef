/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checksums of pages from C: a pool with them, one without, damage, engines that keep none.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct root {
  uint64_t words[512];
};

static int set(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  int i, failed = 0;
  for (i = 0; i < 512; ++i)
    failed |= perdure_write_word(tx, &root->words[i], *(uint64_t*)arg + (uint64_t)i);
  return failed;
}

/* Inverts the first byte of the file whose words are 77, 78, ... */
static void damage(const char* path) {
  FILE* file = fopen(path, "r+b");
  uint64_t words[2];
  long at;
  CHECK(file != NULL);
  for (at = 0; fseek(file, at, SEEK_SET) == 0 && fread(words, sizeof words, 1, file) == 1; at += 64)
    if (words[0] == 77 && words[1] == 78) break;
  words[0] = ~words[0];
  CHECK(fseek(file, at, SEEK_SET) == 0);
  CHECK(fwrite(words, 8, 1, file) == 1);
  CHECK(fclose(file) == 0);
}

int main(void) {
  char folder[] = "/tmp/perdure-capi-XXXXXX";
  char path[64], other[64];
  perdure_options options = {0};
  perdure_scrub_report report;
  perdure_pool* pool;
  uint64_t value = 77;
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/pool", folder);
  snprintf(other, sizeof other, "%s/other", folder);
  options.root_bytes = sizeof(struct root);

  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_scrub(pool, 0, &report), PERDURE_OK);
  CHECK(report.has_checksums == 0 && report.pages == 0);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  /* an existing pool gets them */
  options.flags = PERDURE_CHECKSUMS;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, set, &value, NULL), PERDURE_OK);
  CHECK_CODE(perdure_checkpoint(pool), PERDURE_OK);
  CHECK_CODE(perdure_scrub(pool, 0, &report), PERDURE_OK);
  CHECK(report.has_checksums == 1 && report.pages > 0 && report.damaged == 0);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  options.flags = PERDURE_OPEN_READ_ONLY;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_scrub(pool, 0, NULL), PERDURE_OK);
  damage(path);
  CHECK_CODE(perdure_scrub(pool, 0, &report), PERDURE_CORRUPT);
  CHECK(report.damaged == 1);
  CHECK(strstr(perdure_message(), "its checksum is") != NULL);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);

  options.flags = PERDURE_CHECKSUMS;
  options.engine = "undo";
  CHECK_CODE(perdure_open(other, &options, &pool), PERDURE_UNSUPPORTED);
  CHECK(remove(path) == 0);
  CHECK(remove(folder) == 0);
  return 0;
}
