/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A process that reads a pool beside the one that writes it: perdure/engine/follow/follower.hpp.
 * The pool has two pages with a word each. Transactions 1 to 4 store their numbers: 1 and 3 to word
 * 1, 2 to both, 4 to word 0. The writer commits, makes checkpoints, one page after the other, and
 * once dies: a recovery brings the data region up to date. The log has the records above the
 * checkpoint id X. The reader attaches, reads ahead, applies, gives pages back, and reads words.
 *
 * Holds: a word that a read returns is that of the reader's state Y (FOLLOW-1 to FOLLOW-3, READER-1,
 * READER-2). Built with one of these it must fail: CLOCK_AFTER_WRITE, NO_SEQUENCE, LATE_SEQUENCE,
 * NO_LOOK, LOOK_BEFORE_LOAD, COPY_TOO_LATE, APPLY_BESIDE_A_VIEW, GIVE_BACK_EARLY. An attachment that
 * ends before it has come to home_clock holds, too: each read then finds that it was overtaken.
 */
#define N 4

/* Word p after transaction y. */
#define STATE(p, y) ((p) == 0 -> ((y) < 2 -> 0 : ((y) < 4 -> 2 : 4)) : ((y) < 4 -> (y) : 3))
#define NAMES(r, p) ((r) == 2 || ((r) % 2) == (p) && (r) != 4 || (r) == 4 && (p) == 0)

byte newest = 0;     /* all transactions up to it are durable, and in the log above X */
byte home[2];        /* the data region */
byte home_clock = 0; /* READER-1 */
byte sequence = 0;   /* READER-2 */
byte X = 0;

active proctype writer() {
  byte copy, clock, cx, p;
  bool died = false;
  do
  :: newest < N -> newest++
  :: newest == N -> break
  :: /* a checkpoint */
    cx = newest; /* CKPT-2 */
    p = 0;
    do
    :: p < 2 ->
      atomic { copy = STATE(p, newest); clock = newest };
#ifdef CLOCK_AFTER_WRITE
      home[p] = copy;
#endif
      if :: home_clock < clock -> home_clock = clock :: else -> skip fi;
#ifndef CLOCK_AFTER_WRITE
      home[p] = copy;
#endif
      p++
    :: else -> break
    od;
    X = cx
  :: !died -> /* a recovery */
    died = true;
#ifndef NO_SEQUENCE
#ifndef LATE_SEQUENCE
    sequence++;
#endif
#endif
    home[0] = STATE(0, newest);
    home[1] = STATE(1, newest);
#ifdef LATE_SEQUENCE
    sequence++;
#endif
    X = newest;
#ifndef NO_SEQUENCE
    sequence++
#endif
  od
}

byte mine[2], last[2]; /* private pages, and the last record that names them */
bool private[2];
byte copied, good, Y, seen;

#ifdef APPLY_BESIDE_A_VIEW
#define MAY_APPLY true
#else
#define MAY_APPLY (!views)
#endif

#define RIGHT (home_clock <= good && sequence == seen)

active proctype reader() {
  byte r, p, v;
  bool was, views = false;
again:
  seen = sequence;
  if :: seen % 2 == 1 -> goto again :: else -> skip fi;
  copied = X;
  private[0] = false; private[1] = false;
  last[0] = 0; last[1] = 0;
  views = false;
  do /* attach */
  :: copied < newest ->
    r = copied + 1;
    if :: r <= X -> goto again :: else -> skip fi; /* the log does not have it any more */
    p = 0;
    do
    :: p < 2 ->
      if
      :: NAMES(r, p) ->
        if :: !private[p] -> mine[p] = home[p]; private[p] = true :: else -> skip fi;
        mine[p] = r;
        last[p] = r
      :: else -> skip
      fi;
      p++
    :: else -> break
    od;
    copied = r
  :: sequence != seen -> goto again
  :: home_clock <= copied ->
    if :: sequence == seen -> break :: else -> goto again fi
  od;
  good = copied;
  Y = copied;
  do
  :: copied < newest -> /* read ahead */
    r = copied + 1;
    if :: r <= X -> goto again :: else -> skip fi;
    p = 0;
    do
    :: p < 2 ->
      if
      :: NAMES(r, p) ->
        if :: !private[p] -> mine[p] = home[p]; private[p] = true :: else -> skip fi;
        last[p] = r
      :: else -> skip
      fi;
      p++
    :: else -> break
    od;
    copied = r;
#ifdef COPY_TOO_LATE
    good = copied
#else
    if :: RIGHT -> good = copied :: else -> goto again fi
#endif
  :: Y < copied && MAY_APPLY -> /* apply */
    p = 0;
    do
    :: p < 2 ->
      if :: STATE(p, copied) != STATE(p, Y) -> mine[p] = STATE(p, copied) :: else -> skip fi;
      p++
    :: else -> break
    od;
#ifndef APPLY_BESIDE_A_VIEW
    Y = copied
#else
    if :: views -> skip :: else -> Y = copied fi
#endif
  :: /* give back */
    p = 0;
    do
    :: p < 2 ->
      r = X;
#ifndef GIVE_BACK_EARLY
      if :: r > Y -> r = Y :: else -> skip fi;
#endif
      if :: private[p] && last[p] <= r -> private[p] = false :: else -> skip fi;
      p++
    :: else -> break
    od
  :: !views -> views = true
  :: views -> views = false
  :: views -> /* a read */
    if :: p = 0 :: p = 1 fi;
#ifdef LOOK_BEFORE_LOAD
    was = RIGHT;
#endif
    v = (private[p] -> mine[p] : home[p]);
#ifdef NO_LOOK
    was = sequence == seen;
#else
#ifndef LOOK_BEFORE_LOAD
    was = RIGHT;
#endif
#endif
    if :: !was -> goto again :: else -> skip fi;
    assert(v == STATE(p, Y))
  od
}
