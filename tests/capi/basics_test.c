/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure.h, used from C as its comments say: on every engine and two media, committed changes are
 * present when the pool is opened again.
 */
#define _GNU_SOURCE
#include "check.h"

struct node {
  uint64_t value;
  struct node* next;
};
struct root {
  uint64_t count;
  struct node* first;
  char name[24];
};

static int nothing(perdure_tx* tx, void* arg) {
  (void)arg;
  return perdure_status(tx);
}

/* Inserts a node at the front. */
static int push(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  struct node* node = perdure_alloc(tx, sizeof *node);
  struct node image = {*(uint64_t*)arg, perdure_read_pointer(tx, &root->first)};
  perdure_write(tx, node, &image, sizeof image);
  perdure_write_pointer(tx, &root->first, node);
  perdure_write_word(tx, &root->count, perdure_read_word(tx, &root->count) + 1);
  return 0;
}

/* Removes the first node. */
static int pop(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  struct node *node = perdure_read_pointer(tx, &root->first), image;
  (void)arg;
  perdure_read(tx, &image, node, sizeof image);
  perdure_write_pointer(tx, &root->first, image.next);
  perdure_write_word(tx, &root->count, perdure_read_word(tx, &root->count) - 1);
  return perdure_free(tx, node);
}

struct sum {
  uint64_t count, nodes, total;
  char name[24];
};
static int look(perdure_tx* tx, void* arg) {
  const struct root* root = perdure_root(tx);
  struct sum* sum = arg;
  const struct node* node;
  memset(sum, 0, sizeof *sum);
  sum->count = perdure_read_word(tx, &root->count);
  for (node = perdure_read_pointer(tx, &root->first); node != NULL;
       node = perdure_read_pointer(tx, &node->next)) {
    sum->nodes++;
    sum->total += perdure_read_word(tx, &node->value);
  }
  return perdure_read(tx, sum->name, root->name, sizeof sum->name);
}

static int rename_to(perdure_tx* tx, void* arg) {
  struct root* root = perdure_root(tx);
  return perdure_write(tx, root->name + 1, arg, strlen(arg) + 1); /* unaligned, part of words */
}

static int change_then_stop(perdure_tx* tx, void* arg) {
  uint64_t value = 1000;
  (void)arg;
  push(tx, &value);
  return 7;
}

static int nested(perdure_tx* tx, void* arg) {
  uint64_t value = 50;
  perdure_id id = 99;
  struct sum sum;
  (void)arg;
  CHECK_CODE(perdure_update(perdure_pool_of(tx), PERDURE_DEFAULT, push, &value, &id), PERDURE_OK);
  CHECK(id == PERDURE_NO_ID);
  /* It sees the change, and does not wait for itself. */
  CHECK_CODE(perdure_view(perdure_pool_of(tx), PERDURE_DURABLE, look, &sum), PERDURE_OK);
  CHECK(sum.count == 101);
  CHECK_CODE(perdure_wait(perdure_pool_of(tx), 1), PERDURE_INVALID);
  CHECK_CODE(perdure_checkpoint(perdure_pool_of(tx)), PERDURE_INVALID);
  CHECK_CODE(perdure_trim(perdure_pool_of(tx), 0, NULL, NULL), PERDURE_INVALID);
  CHECK_CODE(perdure_update(perdure_pool_of(tx), PERDURE_DEFAULT, change_then_stop, NULL, NULL),
             PERDURE_ABORTED);
  CHECK_CODE(perdure_status(tx), PERDURE_ABORTED); /* flat: everything is rolled back */
  return 0;
}

static void called(int code, void* arg) { *(int*)arg = code; }

static void on_engine(const char* engine, const char* medium) {
  const int keeps = !starts_with(engine, "volatile");
  const int stamps = strstr(engine, "/htm") != NULL; /* numbers with gaps, durable up to a time */
  perdure_options options = small(engine, medium, sizeof(struct root));
  perdure_pool* pool;
  perdure_stats stats;
  perdure_id last = 0, id;
  struct sum sum;
  uint64_t i;
  int code = -99;
  char path[128];
  strcpy(path, scratch("pool"));
  unlink(path);
  options.flags = PERDURE_NO_HELPER;
  if (strstr(engine, "none") != NULL) options.flags |= PERDURE_CALLER_ISOLATES;

  code = perdure_open(path, &options, &pool);
  if (code == PERDURE_UNSUPPORTED && stamps) {
    printf("%s: left out: %s\n", engine, perdure_message());
    return;
  }
  CHECK_CODE(code, PERDURE_OK);
  code = -99;
  CHECK(strcmp(perdure_engine(pool), engine) == 0);
  id = 99;
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, nothing, NULL, &id), PERDURE_OK);
  /* An update that changes nothing, before any that changed something. */
  CHECK(stamps || (id == 0 && perdure_is_durable(pool, id)));
  CHECK_CODE(perdure_wait(pool, id), PERDURE_OK);
  for (i = 1; i <= 100; i++) {
    CHECK_CODE(perdure_update(pool, i % 2 == 0 ? PERDURE_DEFAULT : PERDURE_ASYNC, push, &i, &id),
               PERDURE_OK);
    CHECK(id > last);
    last = id;
  }
  CHECK_CODE(perdure_update(pool, PERDURE_GROUP, rename_to, "hello, pool", &last), PERDURE_OK);
  CHECK_CODE(perdure_wait(pool, last), PERDURE_OK);
  CHECK(perdure_is_durable(pool, last) == keeps);
  CHECK(!keeps   ? perdure_durable_id(pool) == 0
        : stamps ? perdure_durable_id(pool) >= last
                 : perdure_durable_id(pool) == last);
  CHECK_CODE(perdure_when_durable(pool, last, called, &code), PERDURE_OK);
  if (keeps) CHECK_CODE(code, PERDURE_OK); /* known already: called before it returned */
  CHECK_CODE(perdure_wait(pool, last + ((perdure_id)1 << 60)), PERDURE_INVALID);
  CHECK_CODE(perdure_wait(pool, PERDURE_NO_ID), PERDURE_INVALID);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, change_then_stop, NULL, &id), PERDURE_ABORTED);
  CHECK(id == PERDURE_NO_ID);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, nested, NULL, NULL), PERDURE_ABORTED);
  for (i = 0; i < 10; i++)
    CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, pop, NULL, NULL), PERDURE_OK);
  CHECK_CODE(perdure_view(pool, PERDURE_DURABLE, look, &sum), PERDURE_OK);
  CHECK(sum.count == 90 && sum.nodes == 90 && sum.total == 90 * 91 / 2 &&
        strcmp(sum.name + 1, "hello, pool") == 0);
  CHECK_CODE(perdure_checkpoint(pool), PERDURE_OK);
  CHECK_CODE(perdure_get_stats(pool, &stats), PERDURE_OK);
  CHECK(stats.commits == 111 && stats.reads >= 1 && stats.was_clean == 1 &&
        stats.heap_used >= 90 * sizeof(struct node));
  if (keeps)
    CHECK(stats.fences > 0 && stats.log_bytes > 0 &&
          (stamps ? stats.checkpoint_id >= stats.last_id : stats.checkpoint_id == stats.last_id));
  {
    uint64_t given_back = 99;
    int more = 99;
    if (keeps) {
      do CHECK_CODE(perdure_trim(pool, 0, &given_back, &more), PERDURE_OK);
      while (more == 1);
      CHECK(given_back % 4096 == 0 && more == 0);
      CHECK_CODE(perdure_trim(pool, 1, &given_back, NULL), PERDURE_OK);
      CHECK(given_back == 0);
    } else {
      /* Refused, unless there is nothing to give back. */
      const int refused = perdure_trim(pool, 0, &given_back, &more);
      CHECK(refused == PERDURE_UNSUPPORTED || refused == PERDURE_OK);
      CHECK(given_back == 0 && more == 0);
    }
    CHECK_CODE(perdure_view(pool, PERDURE_DURABLE, look, &sum), PERDURE_OK);
    CHECK(sum.count == 90 && sum.total == 90 * 91 / 2);
  }
  {
    const uint64_t offset = perdure_offset(pool, &i);
    CHECK(offset == 0 && perdure_address(pool, 0) == NULL &&
          perdure_address(pool, UINT64_MAX) == NULL);
    CHECK(perdure_offset(pool, perdure_address(pool, 1 << 20)) == 1 << 20);
  }
  CHECK_CODE(perdure_close(pool, &stats), PERDURE_OK);
  CHECK(stats.commits == 111);
  CHECK(keeps ? code == PERDURE_OK : code != -99);

  /* No engine is named: the file says which it is. */
  options.engine = NULL;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &sum), PERDURE_OK);
  CHECK(keeps ? sum.count == 90 && sum.nodes == 90 && sum.total == 90 * 91 / 2 &&
                    strcmp(sum.name + 1, "hello, pool") == 0
              : sum.count == 0);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);

  /* And read-only, without knowing the root. */
  options =
      (perdure_options){.flags = PERDURE_ANY_LAYOUT | PERDURE_OPEN_READ_ONLY, .medium = medium};
  if (strstr(engine, "none") != NULL) options.flags |= PERDURE_CALLER_ISOLATES;
  CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
  CHECK_CODE(perdure_view(pool, PERDURE_DEFAULT, look, &sum), PERDURE_OK);
  CHECK(keeps ? sum.count == 90 : sum.count == 0);
  CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, pop, NULL, NULL), PERDURE_READ_ONLY);
  CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  printf("%s, %s: as promised\n", engine, medium);
}

static int large_block(perdure_tx* tx, void* arg) {
  (void)arg;
  if (perdure_alloc(tx, 8 << 20) == NULL) CHECK_CODE(perdure_status(tx), PERDURE_FULL);
  return 0;
}

/* A larger max_size alone raises nothing; with the flag it does, and what was full has space. */
static void raised(void) {
  perdure_options options = small("shadow", "emulated", sizeof(struct root));
  perdure_pool* pool;
  int round;
  char path[128];
  strcpy(path, scratch("raised"));
  options.max_size = 4 << 20;
  for (round = 0; round < 4; round++) {
    if (round == 1) options.max_size = 64 << 20;
    if (round == 2) options.flags = PERDURE_RAISE_MAX_SIZE;
    if (round == 3) options.flags = 0, options.max_size = 0;
    CHECK_CODE(perdure_open(path, &options, &pool), PERDURE_OK);
    CHECK_CODE(perdure_update(pool, PERDURE_DEFAULT, large_block, NULL, NULL),
               round < 2 ? PERDURE_FULL : PERDURE_OK);
    CHECK_CODE(perdure_close(pool, NULL), PERDURE_OK);
  }
}

int main(void) {
  size_t n;
  const char* engine;
  CHECK(strcmp(perdure_version(), PERDURE_TEST_VERSION) == 0);
  CHECK(strcmp(perdure_message(), "") == 0);
  for (n = 0; (engine = perdure_engine_at(n)) != NULL; n++) {
    /* One instance per family, because these wait for a disk. */
    if (strchr(engine, '/') == NULL) on_engine(engine, "file");
    on_engine(engine, "emulated");
  }
  CHECK(n >= 4);
  raised();
  scratch(NULL);
  return 0;
}
