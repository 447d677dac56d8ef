/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Archives and backups from C: a pool with an archive, backups of snapshots, what is restored.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

struct root {
  uint64_t count;
};

static int set(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  return perdure_write_word(tx, &root->count, *(uint64_t*)arg);
}

static int look(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  *(uint64_t*)arg = perdure_read_word(tx, &root->count);
  return 0;
}

static uint64_t value_in(const char* path) {
  perdure_options options = {0};
  perdure_pool* pool;
  uint64_t value = 0;
  options.root_bytes = sizeof(struct root);
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &value), PERDURE_OK);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  return value;
}

int main(void) {
  char folder[] = "/tmp/perdure-capi-XXXXXX";
  char path[64], archive[64], other[64], restored[64], command[64];
  perdure_options options = {0};
  perdure_pool* pool;
  perdure_snapshot* snapshot;
  perdure_id ids[10];
  uint64_t i;
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/pool", folder);
  snprintf(archive, sizeof archive, "%s/archive", folder);
  snprintf(other, sizeof other, "%s/other", folder);
  snprintf(restored, sizeof restored, "%s/restored", folder);
  options.root_bytes = sizeof(struct root);
  options.archive = archive;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  for (i = 0; i < 10; ++i) {
    CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, set, &i, &ids[i]), PERDURE_OK);
    if (i != 4) continue;
    CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &snapshot), PERDURE_OK);
    CHECK_CODE(perdure_snapshot_backup(snapshot, NULL), PERDURE_OK);
    CHECK_CODE(perdure_snapshot_backup(snapshot, other), PERDURE_OK);
    perdure_snapshot_close(snapshot);
  }
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &snapshot), PERDURE_OK);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_backup(snapshot, other), PERDURE_CLOSED);
  perdure_snapshot_close(snapshot);

  for (i = 0; i < 10; ++i) {
    CHECK_CODE(perdure_restore(archive, restored, ids[i]), PERDURE_OK);
    CHECK(value_in(restored) == i);
    CHECK_CODE(perdure_restore(archive, restored, ids[i]), PERDURE_EXISTS);
    CHECK(remove(restored) == 0);
  }
  CHECK_CODE(perdure_restore(archive, restored, PERDURE_NO_ID), PERDURE_OK);
  CHECK(value_in(restored) == 9);
  CHECK(remove(restored) == 0);
  CHECK_CODE(perdure_restore(other, restored, PERDURE_NO_ID), PERDURE_OK);
  CHECK(value_in(restored) == 4);
  CHECK(remove(restored) == 0);
  CHECK_CODE(perdure_restore(other, restored, ids[5]), PERDURE_NOT_FOUND);
  CHECK_CODE(perdure_restore(folder, NULL, PERDURE_NO_ID), PERDURE_INVALID);

  /* without an archive a folder is needed */
  options.archive = NULL;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_open(pool, PERDURE_DEFAULT, &snapshot), PERDURE_OK);
  CHECK_CODE(perdure_snapshot_backup(snapshot, NULL), PERDURE_INVALID);
  perdure_snapshot_close(snapshot);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  options.archive = archive;
  options.engine = "undo";
  snprintf(path, sizeof path, "%s/undo", folder);
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_UNSUPPORTED);

  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
  return 0;
}
