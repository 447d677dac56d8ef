/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commit timestamps of hardware transactions (perdure/tm/htm.hpp, timestamps.hpp) on a processor
 * with store buffers. Two threads run transactions that read one of two lines and may write one; a
 * third calls complete(). A store of `pending` waits in its thread's store buffer until the buffer
 * drains, and a line that a transaction has stored to is owned when the buffer drains: at drain(),
 * at the transaction's end, or at any other time that the processor chooses. A thread that requests
 * a line aborts the other transaction that has it (the requester wins).
 *
 * Checked: timestamps follow the order of conflicts (TIMESTAMP-1), and complete() never says a
 * timestamp whose transaction is not yet in its log (HTM-1, HTM-2).
 *
 * Built with one of these it must fail: PENDING_NOT_DRAINED, LINES_NOT_DRAINED, TIME_READ_LAST,
 * PENDING_CLEARED_EARLY. run_models.py does all of that. The first two together are a locked
 * instruction in the place of drain().
 */
#define NONE 255
#define THREADS 2

byte counter = 1;                  /* the time-stamp counter: each timestamp takes the next value */
byte shown[THREADS] = NONE;        /* Slot::pending as others see it */
byte buffered[THREADS] = NONE;     /* the value that waits in the store buffer */
bool waits[THREADS];               /* ... if one does */
bool inside[THREADS], aborted[THREADS];
byte has_read[THREADS], owned[THREADS], stored[THREADS];   /* lines, a bit each */
/* of each line: the highest timestamp that wrote it, and the highest that read it */
byte last_write[2], last_read[2];
byte said = 0;                     /* the most that complete() has said */

inline show_late(me) {
  if :: waits[me] -> shown[me] = buffered[me]; waits[me] = false; buffered[me] = NONE :: else fi
}
inline take(me, lines) {           /* the other's transaction has one of them: it is aborted */
  if
  :: inside[1 - me] && (((has_read[1 - me] | owned[1 - me]) & (lines)) != 0) ->
     aborted[1 - me] = true; owned[1 - me] = 0; has_read[1 - me] = 0; stored[1 - me] = 0
  :: else
  fi
}
inline own_stores(me) {
  if
  :: !aborted[me] -> take(me, stored[me]); owned[me] = owned[me] | stored[me]; stored[me] = 0
  :: else
  fi
}
inline buffer(me, value) {
  d_step { show_late(me); buffered[me] = value; waits[me] = true }
}

proctype thread(byte me; byte transactions) {
  byte n = 0, r = 0, w = 0, stamp = 0;
  do
  :: n == transactions -> break
  :: else ->
     /* w == 2: it only reads. By symmetry thread 0 reads line 0 first */
     if
     :: r = 0; w = 0 :: r = 0; w = 1 :: r = 0; w = 2
     :: n + me != 0 -> r = 1; w = 0 :: n + me != 0 -> r = 1; w = 1 :: n + me != 0 -> r = 1; w = 2
     fi;
     /* HTM-1: a bound of the timestamp to come */
     if :: w < 2 -> buffer(me, counter) :: else fi;
     /* it begins with a load: the line comes from its owner */
     d_step {
       inside[me] = true; aborted[me] = false; owned[me] = 0; stored[me] = 0;
       if
       :: inside[1 - me] && (owned[1 - me] & (1 << r)) != 0 ->
          aborted[1 - me] = true; owned[1 - me] = 0; has_read[1 - me] = 0; stored[1 - me] = 0
       :: else
       fi;
       has_read[me] = 1 << r
     };
     if
     :: w < 2 ->
        d_step { if :: !aborted[me] -> stored[me] = 1 << w :: else fi };
        d_step {                                         /* drain() */
#ifndef PENDING_NOT_DRAINED
          show_late(me);
#endif
#ifndef LINES_NOT_DRAINED
          own_stores(me);
#endif
          skip
        };
        d_step { stamp = counter; counter++ }
     :: else ->
        d_step { stamp = counter - 1 }                   /* a view's time */
     fi;
     d_step {                                            /* the end: it drains the store buffer */
       show_late(me);
       own_stores(me);
       inside[me] = false; owned[me] = 0; has_read[me] = 0;
       if
       :: aborted[me] -> skip
       :: else ->
          if
          :: w < 2 ->
             assert(stamp > last_write[r]);              /* it read what a lower timestamp wrote */
             assert(stamp > last_write[w] && stamp > last_read[w]);
             last_write[w] = stamp
          :: else -> assert(stamp >= last_write[r])
          fi;
          if :: last_read[r] < stamp && !(w < 2 && w == r) -> last_read[r] = stamp :: else fi
       fi
     };
#ifdef PENDING_CLEARED_EARLY
     d_step { shown[me] = NONE };
#endif
     if
     :: w < 2 && !aborted[me] -> assert(said < stamp)    /* here its payload goes to the log */
     :: else
     fi;
     d_step { shown[me] = NONE; r = 0; w = 0; stamp = 0; aborted[me] = false; n++ }
  od
}

proctype store_buffers() {         /* they drain when they like */
end:
  do
  :: d_step { waits[0] -> show_late(0) }
  :: d_step { waits[1] -> show_late(1) }
  :: d_step { inside[0] && stored[0] != 0 -> own_stores(0) }
  :: d_step { inside[1] && stored[1] != 0 -> own_stores(1) }
  od
}

proctype complete() {
  byte n = 0, all = 0, p = 0;
  do
  :: n == 2 -> break
  :: else ->
#ifndef TIME_READ_LAST
     all = counter - 1;
#else
     all = NONE;
#endif
     p = shown[0];
     if :: p != NONE && p - 1 < all -> all = p - 1 :: else fi;
     p = shown[1];
     if :: p != NONE && p - 1 < all -> all = p - 1 :: else fi;
#ifdef TIME_READ_LAST
     if :: counter - 1 < all -> all = counter - 1 :: else fi;
#endif
     d_step { if :: all > said -> said = all :: else fi; all = 0; p = 0; n++ }
  od
}

init {
  atomic { run thread(0, 2); run thread(1, 1); run store_buffers(); run complete() }
}
