/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Perdure from C: durable transactions on structs in a pool file. The C++ interface is
 * perdure.hpp; both open the same pools.
 *
 *   struct counter { uint64_t runs; };
 *   static int count(perdure_tx *tx, void *arg) {
 *     struct counter *root = perdure_root(tx);
 *     (void)arg;
 *     perdure_write_word(tx, &root->runs, perdure_read_word(tx, &root->runs) + 1);
 *     return 0;
 *   }
 *   ...
 *   perdure_options options = {.root_bytes = sizeof(struct counter), .layout = "counter/1"};
 *   perdure_pool *pool;
 *   if (perdure_open("counter.perdure", &options, &pool) != PERDURE_OK) {
 *     fprintf(stderr, "%s\n", perdure_message());
 *     exit(1);
 *   }
 *   perdure_update(pool, PERDURE_DURABLE, count, NULL, NULL);
 *   perdure_close(pool, NULL);
 *
 * POINTERS. A pool is mapped at the same address every time it is opened, so a struct in it may
 * hold ordinary pointers to others. What they point to is read and written through a transaction
 * only: never with * or ->. &p->field is fine: it only computes an address.
 *
 * ERRORS. A call that can fail returns a code, 0 for success; perdure_message() then gives the
 * text. No call exits, prints, raises a signal or lets a C++ exception out. Every call lists its
 * codes; each call on an open pool may also return PERDURE_TOO_MANY_THREADS, at a thread's first.
 * After PERDURE_OUT_OF_MEMORY the call has done nothing, unless it says otherwise.
 *
 * THREADS. A pool may be used by any number of threads at once (up to 256 in a process), except
 * where a call says otherwise. A perdure_tx belongs to the thread and the call it was passed to. A
 * thread counts from its first call on a pool until it has ended, also where destructors of its
 * thread-specific data call the library.
 *
 * FORK. A forked child can open pools of its own. It can open the parent's pool too, once the
 * parent has closed it or has ended; before that perdure_open() returns PERDURE_BUSY. On handles
 * that the child has inherited, calls return PERDURE_CLOSED and touch nothing; calls that return
 * no code return 0 or NULL. perdure_close() frees an inherited handle. Other threads of the parent
 * may be in any call meanwhile.
 */
#ifndef PERDURE_H
#define PERDURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codes that calls return. The values from 0 on are perdure::Code's (perdure/base/status.hpp
 * has the rule) and never change. A program must expect codes that are newer than its perdure.h,
 * and treat a code that it does not know as a failure. */
typedef enum perdure_code {
  PERDURE_OK = 0,
  /* the operating system or the medium failed (errno's text is in the message) */
  PERDURE_IO = 1,
  PERDURE_BUSY = 2,    /* the pool is open elsewhere */
  PERDURE_CORRUPT = 3, /* bytes that were durable no longer check; nothing was changed */
  /* not a pool; or a newer version or feature; or another layout, engine or endianness; or its
   * address is taken */
  PERDURE_INCOMPATIBLE = 4,
  /* no space: heap, max_size or disk; the transaction was rolled back */
  PERDURE_FULL = 5,
  PERDURE_TOO_BIG = 6, /* a transaction that can never fit its log; rolled back */
  /* a change in a pool that is open for reading only, or in a view */
  PERDURE_READ_ONLY = 7,
  PERDURE_NOT_FOUND = 8,    /* the named file does not exist */
  PERDURE_INVALID = 9,      /* an argument that makes no sense; the message says which */
  PERDURE_UNSUPPORTED = 10, /* this machine or build can't do that; the message says why */
  /* the medium failed earlier; the pool refuses until it is reopened */
  PERDURE_POISONED = 11,
  PERDURE_EXISTS = 12,        /* the pool to be created exists already */
  PERDURE_CLOSED = 13,        /* this handle was carried through fork() */
  PERDURE_OUT_OF_MEMORY = 14, /* DRAM ran out */
  /* more threads use the library at once than it has slots for, or the system starts none */
  PERDURE_TOO_MANY_THREADS = 15,
  /* a snapshot's memory was needed: it can't be read any more; an archive was given up; a state
   * that a writer has overtaken; a wait that was over */
  PERDURE_EXPIRED = 16,
  /* another copy of the replicated pool has become its primary: this one refuses changes */
  PERDURE_DEPOSED = 17,
  PERDURE_UNAVAILABLE = 18, /* the replicated log did not answer in time; try again */
  /* the transaction is committed and durable in this copy; the replicated log has not acknowledged
   * it in time, and may yet */
  PERDURE_IN_DOUBT = 19,
  /* this copy has transactions that the replicated log lacks and never gets */
  PERDURE_DIVERGED = 20,
  PERDURE_ABORTED = -1, /* the body asked for a rollback by returning other than 0 */
  /* inside a body only: a conflict, or the log has no space yet; the body should return soon, and
   * runs again */
  PERDURE_AGAIN = -2
} perdure_code;

/* In C++ the enum has a fixed type, so that a value outside it is an error that the library can
 * report. It is as wide as in C. */
#ifdef __cplusplus
#define PERDURE_ENUM_BASE : unsigned
#else
#define PERDURE_ENUM_BASE
#endif

/* When perdure_update() returns. A zero selects what the pool was opened with. */
typedef enum perdure_durability PERDURE_ENUM_BASE {
  PERDURE_DEFAULT = 0, /* the pool's own; at perdure_open: durable */
  PERDURE_DURABLE = 1, /* durable when the call returns */
  PERDURE_GROUP = 2,   /* as durable; commits that wait at the same time share a sync */
  /* returns at once; perdure_wait() waits for durability. The transaction becomes durable by itself
   * within 10 ms, with combined records within 2.5 s */
  PERDURE_ASYNC = 3
} perdure_durability;
#undef PERDURE_ENUM_BASE

/* perdure_options.flags */
enum {
  PERDURE_NO_CREATE = 1,   /* PERDURE_NOT_FOUND if there is no such pool */
  PERDURE_MUST_CREATE = 2, /* PERDURE_EXISTS if there is one */
  /* views only; any number of processes may, also beside the one that writes (docs/readers.md) */
  PERDURE_OPEN_READ_ONLY = 4,
  /* open an existing pool whatever its root type is: the caller knows it, or reads only counters */
  PERDURE_ANY_LAYOUT = 8,
  /* no two threads of the caller access one 8-byte word at once: picks an instance without
   * isolation */
  PERDURE_CALLER_ISOLATES = 16,
  PERDURE_BUFFERED = 32, /* medium "file": don't try O_DIRECT for the log */
  /* on memory, the default engine: the threads that commit make the checkpoints, and the pool
   * starts no thread of its own for them (ShadowOptions::helper) */
  PERDURE_NO_HELPER = 64,
  /* raises the limit of an existing pool to max_size, if that is larger, for good */
  PERDURE_RAISE_MAX_SIZE = 128,
  /* the pages have checksums from now on, those of an existing pool as they are next written to;
   * PERDURE_UNSUPPORTED with engines that don't keep them (Options::checksums) */
  PERDURE_CHECKSUMS = 256
};

/* What can be chosen at opening. All zero (or a null pointer) is a good choice. Set fields by
 * name: more will be added. */
typedef struct perdure_options {
  /* size of the root object: zeros in a new pool; an existing pool must have been made with the
   * same */
  uint64_t root_bytes;
  /* names the root's type and version, such as "bank/1"; must match the pool's. NULL: "bytes". A
   * C++ root whose layout_id is the same text, and whose size is root_bytes, opens the same pool */
  const char* layout;
  /* "shadow", "undo", "volatile/stm", ... see perdure_engine_at(). NULL: the pool's own; a new
   * pool: "shadow" */
  const char* engine;
  const char* medium; /* "auto", "file", "dax", "emulated". NULL: "auto" */
  /* medium "emulated": a paper's slow memory: "none", "rewind", "blurred", "dudetm",
   * "dudetm-3500", "softwrap" */
  const char* delays;
  /* new pool, or with PERDURE_RAISE_MAX_SIZE: the data's upper bound in bytes. 0: 64 GiB */
  uint64_t max_size;
  uint64_t initial_size; /* new pool: data bytes allocated at once. 0: the minimum */
  /* new pool: bytes of log, which take blocks as they are used. 0: 64 MiB. One transaction
   * may log half a ring: log_size / threads / 2 on memory, log_size / 2 on files */
  uint64_t log_size;
  /* new pool on memory, durable: writers with a log ring of their own. 0: 4. More threads share
   * the last one */
  uint32_t threads;
  uint32_t flags; /* PERDURE_NO_CREATE | ... */
  /* when perdure_update(PERDURE_DEFAULT) returns; at creation it also decides the order of the
   * pool's commits */
  perdure_durability durability;
  /* bytes of DRAM that changed pages may take; 0: all stay in DRAM until the pool is closed
   * (Options::max_resident) */
  uint64_t max_resident;
  /* the default engine: bytes of DRAM, 64 KiB or more, that snapshots may take; 0: 1 GiB
   * (ShadowOptions::snapshot_memory) */
  uint64_t snapshot_memory;
  /* a folder in which the log is archived, so that each state can be restored (Options::archive);
   * NULL: no archive */
  const char* archive;
  /* the log over which the pool is replicated: a folder that the copies share, or nats://... in a
   * program that has called perdure_nats_enable() of nats/enable.h (Options::replicate); NULL:
   * none */
  const char* replicate;
  /* this copy's name, for messages and for levels of standbys (ReplicateOptions::name); NULL: the
   * machine's */
  const char* replicate_as;
  /* milliseconds that opening, and a wait for a level, wait for the log; 0: 10,000
   * (ReplicateOptions::patience) */
  uint64_t replicate_patience;
  /* a primary that has appended nothing for this long, up to 60,000 milliseconds, gives standbys a
   * sign (ReplicateOptions::beat_every); 0: none, and no standby takes over by itself */
  uint64_t replicate_beat;
} perdure_options;

typedef struct perdure_pool perdure_pool;         /* an open pool */
typedef struct perdure_tx perdure_tx;             /* a transaction in progress, inside a body */
typedef struct perdure_snapshot perdure_snapshot; /* one state of a pool, kept readable */

/* A transaction's number: later commits have higher ones. A transaction that changed nothing has
 * that of the newest it may have seen, 0 in a pool where none has committed yet. PERDURE_NO_ID
 * means that it failed, or was nested in another one, which has the number. */
typedef uint64_t perdure_id;
/* No transaction's number. */
#define PERDURE_NO_ID UINT64_MAX

/* ---- the library ----------------------------------------------------------------------------- */

/* Returns the version of the library, "0.1.0". Any thread may call it. */
const char* perdure_version(void);

/* Returns the text of the calling thread's last failure: the file, what was found, what was
 * expected, what to do. "" if none failed yet. Valid until the thread's next failing call. A call
 * that succeeds leaves it as it was. Texts over 1023 bytes are cut. */
const char* perdure_message(void);

/* Returns a code's name: "ok", "io", "busy", ..., "diverged", "aborted", "again";
 * "unknown" for any other number. */
const char* perdure_code_name(int code);

/* Returns the name of the n-th engine instance that perdure_options.engine takes; NULL past the
 * last one. The papers' are among them after perdure_papers_register() of <papers/papers.h>. Where
 * the machine lacks what an instance needs ("volatile/htm": hardware transactions), opening
 * returns PERDURE_UNSUPPORTED. */
const char* perdure_engine_at(size_t n);

/* ---- opening and closing --------------------------------------------------------------------- */

/* Opens the pool `path` and recovers it if it was not closed; creates it if there is none. *pool is
 * set on success, otherwise NULL. RETURNS PERDURE_OK, IO, BUSY, CORRUPT, INCOMPATIBLE, FULL,
 * READ_ONLY (read-only, but needs recovery), NOT_FOUND, EXISTS, INVALID, UNSUPPORTED,
 * OUT_OF_MEMORY (DRAM or address space), TOO_MANY_THREADS. A pool that is refused was not written
 * to; one whose recovery failed is as it was, or recovered. A new one has left no file, unless its
 * removal failed too.
 * Where the environment variable PERDURE_TRACE names a file, what the pool's transactions do is
 * recorded there for `perdure advise` (docs/advise.md).
 * THREADS: any; of two concurrent openings of one pool, one returns PERDURE_BUSY. */
int perdure_open(const char* path, const perdure_options* options, perdure_pool** pool);

/* Counters of an open pool, since it was opened. Each is right by itself; they are not all read at
 * one moment. */
typedef struct perdure_stats {
  uint64_t commits;  /* transactions that changed something */
  uint64_t reads;    /* transactions that changed nothing */
  uint64_t restarts; /* runs thrown away after a conflict */
  /* newest; durable up to; checkpointed up to: what recovery need not read */
  perdure_id last_id, durable_id, checkpoint_id;
  uint64_t log_bytes; /* appended */
  /* bytes of log that hold records still needed; bytes of log in all */
  uint64_t log_used, log_capacity;
  uint64_t checkpoints; /* since it was opened */
  /* bytes in allocated blocks; bytes the data has on the medium */
  uint64_t heap_used, data_bytes;
  /* waits for durability; those that were system calls; bytes given to the device */
  uint64_t fences, syncs, written_bytes;
  uint64_t recovered_transactions;   /* replayed at opening */
  uint64_t rolled_back_transactions; /* undone at opening (engine undo) */
  uint64_t was_clean;                /* 1: opening had nothing to recover */
} perdure_stats;

/* Checkpoints, marks the pool clean, closes it and frees the handle, whatever it returns. Snapshots
 * that are open expire, and the call returns when no thread reads one. `last`
 * (may be NULL) receives the counters. After a failure the pool is as a crash leaves it: what was
 * acknowledged is kept, and the next opening recovers. RETURNS PERDURE_OK, IO, BUSY (SoftWrAP: a
 * transaction that makes no call), POISONED, OUT_OF_MEMORY; CLOSED (forked child), which frees the
 * handle too; INVALID (inside a body), which leaves it. Closing NULL does nothing.
 * THREADS: no other call may be in progress or follow. */
int perdure_close(perdure_pool* pool, perdure_stats* last);

/* Returns the name of the instance that the pool runs: "shadow". Valid while the pool is open. */
const char* perdure_engine(const perdure_pool* pool);

/* Reads the counters. RETURNS PERDURE_OK, CLOSED, OUT_OF_MEMORY. */
int perdure_get_stats(perdure_pool* pool, perdure_stats* stats);

/* Takes a checkpoint: the data on the medium receives everything that is durable, and the log is
 * truncated, while transactions run. Not from inside a body (PERDURE_INVALID). RETURNS PERDURE_OK,
 * IO, BUSY (as perdure_close), POISONED, CLOSED, INVALID, OUT_OF_MEMORY: the log is then as it
 * was, or partly truncated. */
int perdure_checkpoint(perdure_pool* pool);

/* Gives free parts of the pool's file back to the file system while transactions run: chunks of
 * 64 KiB without a block, at most `max_bytes` in one call (0: 64 MiB). The file keeps its length
 * and has holes there; later allocations take disk space again. The call waits for the transactions
 * and views that are open when it begins, and takes a checkpoint. *given_back (may be NULL) is set
 * to the bytes that the file system got back; *more (may be NULL) to 1 if another call may give
 * more back, else to 0. Not from inside a body (PERDURE_INVALID). RETURNS PERDURE_OK, UNSUPPORTED
 * (a device or a file system without holes; an engine that makes nothing durable), READ_ONLY, IO,
 * FULL, BUSY (as perdure_close), POISONED, CLOSED, INVALID, OUT_OF_MEMORY. After an error both
 * outputs are 0, and the pool is as good as before, unless the medium failed. THREADS: any; a
 * second call waits for the first. */
int perdure_trim(perdure_pool* pool, uint64_t max_bytes, uint64_t* given_back, int* more);

/* What perdure_scrub() found. */
typedef struct perdure_scrub_report {
  int has_checksums; /* 0: the pool has none, and nothing was read */
  int from_disk;     /* 0: what the page cache has was compared */
  uint64_t pages;    /* of 4096 bytes, compared */
  uint64_t without;  /* in use and without a checksum */
  /* not as their checksums say, in a pool that was killed during a checkpoint: its recovery decides
   * what they hold */
  uint64_t undecided;
  uint64_t damaged; /* not as their checksums say */
} perdure_scrub_report;

/* Compares every page of the pool's file with its checksum, while transactions run, or while
 * another process writes the pool; changes nothing. `bytes_per_second`: at most, 0: no limit.
 * `report` may be NULL. RETURNS PERDURE_OK, CORRUPT (pages are damaged: the message names the
 * first), BUSY while another process is opening the pool, IO, CLOSED, OUT_OF_MEMORY. THREADS: any,
 * also inside a body; in a pool that is open beside its writer, one at a time. */
int perdure_scrub(perdure_pool* pool, uint64_t bytes_per_second, perdure_scrub_report* report);

/* ---- transactions ---------------------------------------------------------------------------- */

/* The body of a transaction. It returns 0 to commit and anything else to roll back. It MAY RUN
 * MORE THAN ONCE: when it conflicts with another thread its changes are undone and it is called
 * again. So it should change nothing outside the pool but its own locals and what it sets anew
 * from its start on. It must not wait for another thread's transaction, and not leave by longjmp.
 * A C++ exception thrown by a body rolls back; perdure_update returns PERDURE_ABORTED. */
typedef int perdure_body(perdure_tx* tx, void* arg);

/* Runs body(tx, arg) as a transaction. `id` (may be NULL) receives its number: a receipt, which
 * perdure_wait() and others take. Inside another update's body on the same pool it joins that one:
 * *id is PERDURE_NO_ID, and a body that returns non-zero rolls all of it back. RETURNS PERDURE_OK
 * when it is committed (and durable, where that was asked for); PERDURE_ABORTED when the body asked
 * for a rollback. These codes roll back too: FULL, TOO_BIG, READ_ONLY, INVALID (also: an update
 * inside a view), POISONED, CLOSED, OUT_OF_MEMORY (DRAM or address space), IO (the pool can't
 * grow), BUSY (SoftWrAP: it delayed other transactions for too long). After PERDURE_POISONED from
 * this very call the transaction may turn out, after reopening, to be durable or not; after any
 * other code nothing has changed. */
int perdure_update(perdure_pool* pool, perdure_durability when, perdure_body* body, void* arg,
                   perdure_id* id);

/* Runs body(tx, arg) as a read-only transaction: it sees one consistent state and writes nothing
 * to the medium. With PERDURE_DURABLE or PERDURE_GROUP, what it saw is durable when the call
 * returns; PERDURE_DEFAULT and PERDURE_ASYNC don't wait. RETURNS PERDURE_OK, ABORTED (the body
 * returned non-zero), INVALID, POISONED, CLOSED, OUT_OF_MEMORY, BUSY (as perdure_update). */
int perdure_view(perdure_pool* pool, perdure_durability when, perdure_body* body, void* arg);

/* ---- snapshots ----------------------------------------------------------------------------------
 * A snapshot is one state of the pool that stays readable for seconds or hours, while transactions
 * go on. Its reads run once, wait for no thread and make none wait. It costs DRAM for what is
 * changed while it is open, at most perdure_options.snapshot_memory for all of a pool's: where that
 * does not suffice, the oldest expires (docs/snapshots.md). Engines "shadow", "shadow/stm" and
 * "shadow/global_lock" have snapshots. */

/* Opens a snapshot of the newest state: every transaction that has returned is in it. With
 * PERDURE_DURABLE or PERDURE_GROUP the call returns when all of them are durable; PERDURE_DEFAULT
 * and PERDURE_ASYNC don't wait for that. It waits for the updates of other threads that are open.
 * *snapshot is set on success, otherwise NULL. RETURNS PERDURE_OK, UNSUPPORTED (the engine has
 * none), INVALID (also: inside an update or a view), EXPIRED (memory did not last for the opening),
 * POISONED, CLOSED, OUT_OF_MEMORY, IO. */
int perdure_snapshot_open(perdure_pool* pool, perdure_durability when, perdure_snapshot** snapshot);

/* Runs body(tx, arg) once over the snapshot's state. In it, calls that read see that state; calls
 * that change fail with PERDURE_READ_ONLY. An update or a view inside the body is a transaction of
 * its own, whose changes the body does not see; perdure_close() of the pool is refused there.
 * RETURNS PERDURE_OK, ABORTED (the body returned non-zero), INVALID, EXPIRED, POISONED, CLOSED (the
 * pool was closed), OUT_OF_MEMORY. THREADS: any number at once. */
int perdure_snapshot_view(perdure_snapshot* snapshot, perdure_body* body, void* arg);

/* Returns the state's id: every transaction up to it is in the state, and no other. */
perdure_id perdure_snapshot_id(const perdure_snapshot* snapshot);

/* Returns 1 if the snapshot can't be read any more, because its memory was needed or the pool was
 * closed, otherwise 0. */
int perdure_snapshot_expired(const perdure_snapshot* snapshot);

/* Writes the state as a pool file of its own, while transactions go on: a backup that can be opened
 * as it is. The file gets its name when it is whole and durable, and replaces none. It is mapped at
 * the pool's address, so one process can't have both open at once. RETURNS PERDURE_OK, EXISTS,
 * FULL, IO, BUSY (another process is making the file), CORRUPT (the pool's heap contradicts
 * itself), INVALID, EXPIRED, POISONED, CLOSED, OUT_OF_MEMORY; no file is left after a failure. */
int perdure_snapshot_copy(perdure_snapshot* snapshot, const char* path);

/* Makes a backup of the state in a folder, in which earlier backups of the pool may be: only what
 * has changed is written. NULL: in the folder of perdure_options.archive. RETURNS PERDURE_OK,
 * INVALID (no folder), INCOMPATIBLE (another pool's folder), NOT_FOUND (the folder's parent), FULL,
 * IO, EXISTS, CORRUPT, EXPIRED, POISONED, CLOSED, OUT_OF_MEMORY. */
int perdure_snapshot_backup(perdure_snapshot* snapshot, const char* folder);

/* Makes the pool file `path` of the backups and the archive in a folder, in the state after the
 * last transaction up to `id`; PERDURE_NO_ID: the newest. No pool need be open. RETURNS PERDURE_OK,
 * EXISTS, NOT_FOUND (no such folder, or no backup reaches the id), CORRUPT, INCOMPATIBLE, FULL, IO,
 * BUSY, INVALID, OUT_OF_MEMORY; no file is left after a failure. */
int perdure_restore(const char* folder, const char* path, perdure_id id);

/* Closes the snapshot and frees the handle; NULL does nothing. The pool may be closed before or
 * after. THREADS: no other call on the snapshot may be in progress or follow. */
void perdure_snapshot_close(perdure_snapshot* snapshot);

/* ---- inside a body -----------------------------------------------------------------------------
 *
 * A failure here STICKS to the transaction: it will not commit, later calls do nothing and return
 * the same code, and what is read is zeros. So a body may check each call, or only
 * perdure_status() where it loops on what it reads, or nothing at all: perdure_update() handles a
 * body that just returns. After PERDURE_AGAIN it runs the body again; any other code it returns.
 * All of the pool is accessed in 8-byte words, so where the caller isolates, two threads must not
 * work in one word. */

/* Returns the root object: options.root_bytes of zeros in a new pool; NULL if there is none. */
void* perdure_root(perdure_tx* tx);

/* Returns the pool that a transaction runs on. */
perdure_pool* perdure_pool_of(perdure_tx* tx);

/* Returns 0 or the code that stuck: PERDURE_AGAIN, or what perdure_update() will return. */
int perdure_status(const perdure_tx* tx);

/* Copies n bytes of the pool to `to`, or from `from` to the pool; any alignment.
 * RETURNS PERDURE_OK, AGAIN, INVALID (outside the pool's data), TOO_BIG, READ_ONLY (a write in a
 * view), POISONED, OUT_OF_MEMORY, BUSY. On failure *to is zeros. */
int perdure_read(perdure_tx* tx, void* to, const void* from, size_t n);
/* Copies n bytes from `from`, anywhere in memory, to `to` in the pool. RETURNS as perdure_read. */
int perdure_write(perdure_tx* tx, void* to, const void* from, size_t n);

/* The same for one aligned word, which is the fastest access. The read returns 0 on failure (see
 * perdure_status). */
uint64_t perdure_read_word(perdure_tx* tx, const void* from);
/* Gives the word at `to` the value. RETURNS as perdure_write. */
int perdure_write_word(perdure_tx* tx, void* to, uint64_t value);

/* Returns a pointer that lies in the pool: the pointer at `from`, read through the transaction.
 * NULL on failure. */
void* perdure_read_pointer(perdure_tx* tx, const void* from);
/* Makes the pointer at `to` lead to `value`, in the pool, or NULL. RETURNS as perdure_write. */
int perdure_write_pointer(perdure_tx* tx, void* to, const void* value);

/* Returns a block of at least n bytes, uninitialised, 16-aligned, 64-aligned where n is a multiple
 * of 64. It is freed if the transaction does not commit.
 * RETURNS NULL on failure: PERDURE_AGAIN, FULL, READ_ONLY, IO, TOO_BIG, POISONED, OUT_OF_MEMORY,
 * BUSY (see perdure_status). */
void* perdure_alloc(perdure_tx* tx, size_t n);

/* Frees a block that perdure_alloc() returned, in this transaction or an earlier one; NULL does
 * nothing. Its bytes may be used again once the transaction has committed.
 * RETURNS PERDURE_OK, AGAIN, INVALID (no allocated block starts there), READ_ONLY, TOO_BIG,
 * POISONED, OUT_OF_MEMORY, BUSY. */
int perdure_free(perdure_tx* tx, void* block);

/* Emits an event: whoever follows the pool gets it once the transaction is durable, or never if it
 * rolls back (docs/events.md). `topic`: 1 to 255 bytes. `schema` is the program's. RETURNS
 * PERDURE_OK, INVALID, UNSUPPORTED (the engine keeps no events), TOO_BIG, READ_ONLY, POISONED,
 * OUT_OF_MEMORY, FULL, IO. */
int perdure_emit(perdure_tx* tx, const char* topic, const void* bytes, size_t n, uint16_t schema);

/* ---- receipts -----------------------------------------------------------------------------------
 * A receipt is a transaction's number, and covers all that the transaction read. Numbers rise in
 * commit order. Those of "dudetm/htm" and "volatile/htm" are commit timestamps: they have gaps and
 * are valid for one session; the next session's may be lower. Engine "volatile" has no durability:
 * there waiting returns at once, and perdure_durable_id() stays 0. */

/* Returns when transaction `id` is durable. RETURNS PERDURE_OK, INVALID (a number that no
 * transaction has), POISONED, CLOSED, OUT_OF_MEMORY. Not inside a body. */
int perdure_wait(perdure_pool* pool, perdure_id id);

/* How far a transaction has got in a replicated pool (docs/replication.md). */
enum {
  PERDURE_LOCAL = 0,   /* it is durable in this copy */
  PERDURE_SHIPPED = 1, /* and the log has it */
  PERDURE_QUORUM = 2,  /* and a majority of its servers, three or more, has it on disk */
  /* the log has it, and a standby has it on its disk, which says so. Of n standbys, up to 16:
   * PERDURE_STANDBY + n - 1 */
  PERDURE_STANDBY = 3
};

/* Returns when transaction `id` has got that far. RETURNS PERDURE_OK; IN_DOUBT when there was no
 * such answer within perdure_options.replicate_patience: call it again; DEPOSED where the log has
 * given another copy the lead before it had the transaction, which it never gets then; UNSUPPORTED
 * for PERDURE_QUORUM where the log does not say so; INVALID also for another level, and in a pool
 * that is not replicated; and what perdure_wait() returns. THREADS: any. */
int perdure_wait_level(perdure_pool* pool, perdure_id id, int level);

/* Calls done(code, arg) once, when `id` has got that far or can't, as perdure_when_durable() does:
 * with what perdure_wait_level() returns, also where this pool can't reach the level. RETURNS as
 * perdure_when_durable(); INVALID also for a number that is no level. */
int perdure_when_level(perdure_pool* pool, perdure_id id, int level,
                       void (*done)(int code, void* arg), void* arg);

/* What is known of a pool's replication; all zeros in one that is not replicated
 * (perdure::ReplicationStats). */
typedef struct perdure_replication {
  int primary;           /* 1: its changes count; 0: another copy has taken over */
  uint64_t term;         /* the number of changes of the primary */
  uint64_t sequence;     /* of the log's last message that is known to be this copy's */
  uint64_t shipped_id;   /* every transaction up to it is in the log */
  uint64_t behind_ms;    /* how long the oldest transaction that is not in the log has waited */
  uint64_t behind_bytes; /* of the pool's log that the replicated one lacks */
  uint64_t waits;        /* how often a commit had to wait for the replicated log */
  uint64_t unanswered;   /* appends that had no answer */
  /* how far standbys say that they are, the farthest first; known once PERDURE_STANDBY was asked
   * for; 0: no such standby */
  uint64_t standby_ids[16];
} perdure_replication;

/* RETURNS PERDURE_OK, CLOSED, OUT_OF_MEMORY; perdure_message() then says why the last attempt to
 * append failed, or is empty. */
int perdure_get_replication(perdure_pool* pool, perdure_replication* replication);

/* Returns 1 when transaction `id`, whose update has returned, is durable, otherwise 0. It never
 * waits. */
int perdure_is_durable(perdure_pool* pool, perdure_id id);

/* Returns the number up to which every transaction is durable; single later ones may be durable. */
perdure_id perdure_durable_id(perdure_pool* pool);

/* Of a pool that was opened with PERDURE_OPEN_READ_ONLY: views see the newest durable state from
 * now on. *id, unless NULL, is set to its number: every transaction up to it is in the state, and
 * no other. Without this call a view sees a state that is 1 ms old at most. Of other pools: sets
 * *id to the newest transaction's. RETURNS PERDURE_OK, INVALID (inside a body), BUSY (a program has
 * opened the pool that serves no readers), EXPIRED (another version of the program has changed the
 * pool: open it again), CORRUPT, IO, CLOSED, OUT_OF_MEMORY. */
int perdure_refresh(perdure_pool* pool, perdure_id* id);

/* Returns when views see transaction `id`, of this or another process, durable: PERDURE_OK; or
 * after `milliseconds`: PERDURE_EXPIRED. RETURNS also what perdure_refresh() does. */
int perdure_wait_for_id(perdure_pool* pool, perdure_id id, uint64_t milliseconds);

/* Calls done(code, arg) once, when `id` is durable (PERDURE_OK) or can't become so: on this thread,
 * before the call returns, if that is known already; otherwise on a thread of the pool's, which
 * blocks the program's signals, and which done should not delay. All are called before
 * perdure_close() returns. RETURNS PERDURE_OK, INVALID, CLOSED, OUT_OF_MEMORY, TOO_MANY_THREADS;
 * where it is not OK, done is not called. */
int perdure_when_durable(perdure_pool* pool, perdure_id id, void (*done)(int code, void* arg),
                         void* arg);

/* ---- addresses ------------------------------------------------------------------------------- */

/* Returns an offset, which names a byte of the pool's data whatever its address is: 0 for NULL, and
 * for an address outside. Never fails otherwise. */
uint64_t perdure_offset(perdure_pool* pool, const void* address);
/* Returns the address of an offset; NULL for 0 and for one beyond the data. */
void* perdure_address(perdure_pool* pool, uint64_t offset);

/* ------------------------------------------------------------------------------------------
 * STANDBYS: further copies of a replicated pool, on other machines, that follow its log, serve
 * reads, and can take over (docs/replication.md, perdure::Standby). */

typedef struct perdure_standby perdure_standby;

/* Opens the copy in the file `path`, and begins to follow. Of `options` it takes root_bytes,
 * layout, medium, archive, and replicate, which must be given, with its name and patience; the
 * others hold when it is promoted. If there is no file, it is made of a backup in `backups`, a
 * folder or KIND://..., and of the log; NULL: there must be one. `take_over_after`: if the log
 * answers and has had nothing new for that number of milliseconds, this copy takes over by itself,
 * from a primary that gives signs (StandbyOptions::take_over_after); 0: never. RETURNS PERDURE_OK,
 * before the copy has caught up; NOT_FOUND (neither file nor backup), UNAVAILABLE (the log does not
 * answer), INVALID, and what perdure_open() returns. On failure *standby is NULL. */
int perdure_standby_open(const char* path, const perdure_options* options, const char* backups,
                         uint64_t take_over_after, perdure_standby** standby);

/* The copy, open for reading: for views, snapshots, perdure_refresh() and perdure_wait_for_id()
 * with a number that the primary's update gave. It ends with the standby, and is not closed by
 * itself. NULL in a forked child. */
perdure_pool* perdure_standby_pool(perdure_standby* standby);

/* What is known of a standby (perdure::StandbyStatus). */
typedef struct perdure_standby_status {
  int follows;   /* 1: it applies what the log gets; 0: it has ended */
  int caught_up; /* 1: since opening it has had all that the log had, at least once */
  /* 1: it has taken over by itself, and follows no more: promote it, and soon, because in time
   * another standby takes over in turn */
  int took_over;
  uint64_t behind_ms; /* how long ago it had all that the log had; before the first time, opened */
  uint64_t id;        /* every transaction up to it is durable in this copy */
  uint64_t term;      /* of the log's last message that was applied */
  uint64_t sequence;  /* of the same */
  uint64_t messages;  /* applied since opening */
  uint64_t bytes;     /* of these */
  uint64_t checkpoint_id; /* the data region has every transaction up to it */
} perdure_standby_status;

/* RETURNS PERDURE_OK while it follows, and when it has taken over; perdure_message() then says why
 * the last attempt to read the log failed, or is empty. Otherwise why it has ended: DIVERGED (it
 * has transactions that the log lacks), EXPIRED (the log was trimmed beyond it), CORRUPT,
 * INCOMPATIBLE, IO, POISONED, with the message; *status is set then, too. Also CLOSED. */
int perdure_standby_get_status(perdure_standby* standby, perdure_standby_status* status);

/* Waits until this copy has all that the log had at the call. RETURNS PERDURE_OK; UNAVAILABLE after
 * `milliseconds`; why it has ended, as perdure_standby_get_status(). */
int perdure_standby_catch_up(perdure_standby* standby, uint64_t milliseconds);

/* Waits until this copy has taken over by itself. RETURNS PERDURE_OK; EXPIRED after `milliseconds`;
 * why it has ended. */
int perdure_standby_took_over(perdure_standby* standby, uint64_t milliseconds);

/* Makes this copy the primary, with everything that the log has, and sets *pool to it, open for
 * writing with the standby's options. The primary of before, should it still run, is deposed. The
 * standby ends, also on failure. No body may run on its pool. RETURNS PERDURE_OK; UNAVAILABLE (the
 * log does not answer: open the pool with the log, or a standby again); DEPOSED (a third copy was
 * faster); why the standby has ended; INVALID inside a body; and what perdure_open() returns. On
 * failure *pool is NULL. */
int perdure_standby_promote(perdure_standby* standby, perdure_pool** pool);

/* Ends the standby and closes the pool in order; NULL: nothing. RETURNS PERDURE_OK, INVALID (inside
 * a body on its pool: the standby stays), and what perdure_close() returns. */
int perdure_standby_close(perdure_standby* standby);

#ifdef __cplusplus
}
#endif

#endif /* PERDURE_H */
