/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The torn-bit log of Blurred Persistence with its write set in the log and bulk persistence
 * (papers/blurred/torn_log.hpp, bppm.hpp, recovery.cpp), one thread. Transactions 1 to LAST store
 * their number to both words of the data region. Their records are stored to the log at once, and a
 * cache may write back any block at any time. Before each of them a run may abort, which flushes
 * nothing and leaves holes. A log holds one transaction and one aborted run, so each generation
 * ends; the third has the torn bits of the first. The power is cut at any instant, and once more in
 * recovery.
 *
 * A block is one step of the medium here. Its torn bit says whether it was written in a generation
 * of this sense; `lap`, which generation it really was, is what the checksums of commit and abort
 * records find out.
 *
 *   TORN-1  A transaction's records, and the abort records before them, are durable when its commit
 *           is acknowledged.
 *   TORN-2  All blocks have one torn bit, durably, before the next generation begins.
 *   BPPM-2  A generation ends when the data region durably holds its transactions, and the
 *           checkpoint id says so.
 *
 * Holds: recovery never finds damage, both words have one value, no acknowledged transaction is
 * lost and none comes back that an id covers. Built with one of these it must fail:
 * ACKNOWLEDGE_EARLY, ABORT_RECORD_UNFLUSHED, REST_NOT_FILLED, HOLES_NOT_FILLED, FILL_NOT_DURABLE,
 * DATA_NOT_FLUSHED, NO_LOOK_AHEAD, ONE_SENSE.
 */
#define BLOCKS 7 /* the first begins a generation; an aborted run has 2 or 3 */
#define REACH 2  /* blocks from a hole to the abort record behind it, at most */
#define LAST 3

/* kinds */
#define none 0
#define word_a 1
#define word_b 2
#define commits 3
#define aborts 4
#define begins 5

#ifdef ONE_SENSE
#define SENSE(lap) 1
#else
#define SENSE(lap) (1 - (lap) % 2)
#endif

/* what is visible and what is durable */
byte kind[BLOCKS], torn[BLOCKS], lap[BLOCKS], id[BLOCKS], back[BLOCKS];
byte kind_d[BLOCKS], torn_d[BLOCKS], lap_d[BLOCKS], id_d[BLOCKS], back_d[BLOCKS];
byte a, b, a_d, b_d;    /* the data region */
byte covered, covered_d; /* the checkpoint id */

byte generation, tail = 1, last_commit;
byte begun, told;       /* transactions: whose commit record may be there; acknowledged */
byte cuts;
bool made;

inline put(at, k, i) {
  d_step {
    kind[at] = k;
    torn[at] = SENSE(generation);
    lap[at] = generation;
    id[at] = i;
    back[at] = last_commit
  }
}
inline write_back(at) {
  kind_d[at] = kind[at];
  torn_d[at] = torn[at];
  lap_d[at] = lap[at];
  id_d[at] = id[at];
  back_d[at] = back[at]
}
/* Flushed, and fenced: blocks [from, to). */
inline fence_blocks(from, to) {
  d_step {
    i = from;
    do
    :: i < to -> write_back(i); i++
    :: else -> break
    od;
    i = 0
  }
}

inline run_that_aborts() {
  first = tail;
  put(tail, word_a, LAST + 1);
  tail++;
  if
  :: put(tail, word_b, LAST + 1); tail++
  :: skip
  fi;
  put(tail, aborts, 0);
  tail++;
  aborted = true
}
inline transaction() {
  first = tail;
  put(tail, word_a, begun + 1);
  tail++;
  put(tail, word_b, begun + 1);
  tail++;
  d_step { begun++; put_commit() };
#ifdef ACKNOWLEDGE_EARLY
  told = begun;
#endif
#ifdef ABORT_RECORD_UNFLUSHED
  fence_blocks(first, tail + 1);
#else
  /* with the abort records since the last commit */
  d_step {
    i = last_commit;
    do
    :: i <= tail ->
      if :: i >= first || kind[i] == aborts -> write_back(i) :: else fi;
      i++
    :: else -> break
    od;
    i = 0
  }
#endif
  last_commit = tail;
  tail++;
  told = begun;
  a = begun;
  b = begun
}
inline put_commit() {
  kind[tail] = commits;
  torn[tail] = SENSE(generation);
  lap[tail] = generation;
  id[tail] = begun;
  back[tail] = last_commit
}
inline next_generation() {
#ifndef DATA_NOT_FLUSHED
  d_step { a_d = a; b_d = b };
#endif
  covered = told;
  covered_d = covered;
  /* TORN-2 */
#ifndef HOLES_NOT_FILLED
  fence_blocks(1, tail);
#endif
#ifndef REST_NOT_FILLED
  d_step {
    i = tail;
    do
    :: i < BLOCKS ->
      kind[i] = none;
      torn[i] = SENSE(generation);
      lap[i] = generation;
      id[i] = 0;
      back[i] = 0;
      i++
    :: else -> break
    od;
    i = 0
  }
#ifndef FILL_NOT_DURABLE
  fence_blocks(tail, BLOCKS);
#endif
#endif
  d_step {
    generation++;
    tail = 1;
    last_commit = 0;
    kind[0] = begins;
    torn[0] = SENSE(generation);
    lap[0] = generation;
    id[0] = 0;
    back[0] = 0
  }
  fence_blocks(0, 1);
  aborted = false
}

/* At a cut it ends, wherever it is. */
active proctype program() {
  byte i, first;
  bool aborted = false;
  {
    /* a new pool: all blocks are zero, and the first begins a generation, durably */
    d_step {
      kind[0] = begins; torn[0] = SENSE(0);
      kind_d[0] = begins; torn_d[0] = SENSE(0)
    }
    made = true;
    do
    :: told < LAST ->
      if
      :: !aborted -> run_that_aborts()
      :: skip
      fi;
      transaction();
      next_generation()
    :: else -> break
    od
  } unless { cuts > 0 };
  atomic { i = 0; first = 0; aborted = false }
}

/* Any word; blocks are decided at the cut. */
active proctype cache() {
end:
  do
  :: atomic { a_d != a -> a_d = a }
  :: atomic { b_d != b -> b_d = b }
  od
}

#define IS_WRITTEN(n) (torn[n] == torn[0])
/* an abort record that leads over what is before it */
#define LEADS_ON(n) \
  (IS_WRITTEN(n) && kind[n] == aborts && lap[n] == lap[0] && back[n] == last_commit)

inline recover() {
  d_step {
    /* the generation's beginning was durable before anything of it */
    n = 1;
    first = 1;
    last_commit = 0;
    do
    :: n < BLOCKS ->
      if
      :: LEADS_ON(n) ->
        n++;
        first = n
      :: IS_WRITTEN(n) && kind[n] == commits ->
        /* a checksum: of this place in this generation, behind both its words */
        assert(lap[n] == lap[0] && back[n] == last_commit && n == first + 2);
        assert(kind[first] == word_a && lap[first] == lap[0] && id[first] == id[n]);
        assert(kind[first + 1] == word_b && lap[first + 1] == lap[0] && id[first + 1] == id[n]);
        if :: id[n] > covered -> found = id[n] :: else fi;
        last_commit = n;
        n++;
        first = n
      :: IS_WRITTEN(n) && (kind[n] == word_a || kind[n] == word_b) -> n++
      :: else -> /* a hole, or the rest */
        ahead = n + 1;
#ifdef NO_LOOK_AHEAD
        ahead = BLOCKS;
#endif
        do
        :: ahead < BLOCKS && ahead <= n + REACH && !LEADS_ON(ahead) -> ahead++
        :: else -> break
        od;
        if
        :: ahead < BLOCKS && ahead <= n + REACH ->
          n = ahead + 1;
          first = n
        :: else -> break
        fi
      fi
    :: else -> break
    od;
    n = 0;
    first = 0;
    ahead = 0
  };
  if
  :: found > 0 ->
    a = found;
    b = found
  :: else
  fi;
  d_step { a_d = a; b_d = b };
  d_step {
    assert(a_d == b_d);
    assert(a_d >= told && a_d <= begun);
    assert(a_d >= covered)
  }
}

proctype recovery() {
  byte n, first, ahead, found;
  byte number = cuts;
  { recover() } unless { cuts > number };
  atomic { n = 0; first = 0; ahead = 0; found = 0; number = 0 }
}

/* Cuts the power. Of a block and of the checkpoint id that is not durable it leaves either. */
active proctype power() {
  byte i;
  do
  :: made && cuts < 2 ->
    atomic {
      cuts++;
      a = a_d;
      b = b_d;
      if :: covered = covered_d :: covered_d = covered fi;
      i = 0;
      do
      :: i < BLOCKS ->
        if
        :: d_step {
            kind[i] = kind_d[i];
            torn[i] = torn_d[i];
            lap[i] = lap_d[i];
            id[i] = id_d[i];
            back[i] = back_d[i]
          }
        :: d_step { write_back(i) }
        fi;
        i++
      :: else -> break
      od;
      i = 0;
      tail = 0;
      generation = 0;
      run recovery()
    }
  :: break
  od
}

