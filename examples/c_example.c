/* SPDX-License-Identifier: BSD-3-Clause
 *
 * c_example FILE TEXT: keeps a list of notes in a pool, newest first, and prints them. See
 * perdure.h for every call.
 */
#include <perdure.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
  struct note* next;
  uint64_t number;
  char text[48];
};
struct notes {
  struct note* newest;
  uint64_t count;
};

/* Adds a note. It may run more than once, so it changes nothing but the pool; it need not check
 * each call: a failure sticks. */
static int add(perdure_tx* tx, void* text) {
  struct notes* root = perdure_root(tx);
  struct note* place = perdure_alloc(tx, sizeof *place);
  struct note note = {0};
  note.next = perdure_read_pointer(tx, &root->newest);
  note.number = perdure_read_word(tx, &root->count) + 1;
  strncpy(note.text, text, sizeof note.text - 1);
  perdure_write(tx, place, &note, sizeof note);
  perdure_write_pointer(tx, &root->newest, place);
  return perdure_write_word(tx, &root->count, note.number);
}

/* Copies the newest notes out. They are printed after the view, because the body may run more than
 * once. */
struct page {
  size_t n;
  struct note notes[10];
};
static int copy(perdure_tx* tx, void* arg) {
  const struct notes* root = perdure_root(tx);
  struct page* page = arg;
  const struct note* at = perdure_read_pointer(tx, &root->newest);
  for (page->n = 0; at != NULL && page->n < 10; at = page->notes[page->n++].next)
    if (perdure_read(tx, &page->notes[page->n], at, sizeof *at) != PERDURE_OK) break;
  return 0;
}

static void must(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "c_example: %s: %s\n", perdure_code_name(code), perdure_message());
  exit(1);
}

int main(int argc, char** argv) {
  perdure_options options = {.root_bytes = sizeof(struct notes),
                             .layout = "notes/1",
                             .max_size = 1 << 30,
                             .log_size = 4 << 20};
  perdure_pool* pool;
  struct page page;
  size_t i;
  if (argc != 3) return fprintf(stderr, "usage: c_example FILE TEXT\n"), 2;
  must(perdure_open(argv[1], &options, &pool));
  must(perdure_update(pool, PERDURE_DURABLE, add, argv[2], NULL));
  must(perdure_view(pool, PERDURE_DEFAULT, copy, &page));
  must(perdure_close(pool, NULL));
  for (i = 0; i < page.n; i++)
    printf("%llu: %s\n", (unsigned long long)page.notes[i].number, page.notes[i].text);
  return 0;
}
