/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that wait for the end of another thread's transaction, and sleep: perdure/tm/waiters.hpp.
 * One thread ends two transactions; its stores wait in a store buffer, which drains at any time, at
 * the thread's own locked instructions, and at another thread's membarrier(2). Two threads wait. In
 * one half of the runs membarrier is missing (`fenced`): then both sides use a locked instruction.
 *
 * Holds: when nothing moves any more both have returned. Built with one of these it must fail:
 * NO_HEAVY_FENCE, LOOK_BEFORE_END, NO_SECOND_LOOK, SLEEP_UNCOMPARED, END_NOT_RAISED,
 * FENCED_LOOKS_PLAINLY. run_models.py does all of that.
 */
byte inside = 1;       /* memory: 1 while the transaction is open */
bool buffered = false; /* the ending thread's store buffer, of one entry */
byte value = 0;
bool fenced = false;
byte count = 0, ends = 0;
bool asleep[2] = false, left[2] = false;
bool done = false;

#define DRAIN if :: buffered -> inside = value; buffered = false :: else -> skip fi

inline store(v) {
  atomic { DRAIN; buffered = true; value = v }
}

inline notify() {
  if
  :: fenced ->
#ifdef FENCED_LOOKS_PLAINLY
    if :: count > 0 -> wake() :: else -> skip fi
#else
    atomic { DRAIN; look = count };
    if :: look > 0 -> wake() :: else -> skip fi
#endif
  :: !fenced ->
    if :: count > 0 -> wake() :: else -> skip fi
  fi
}

inline wake() {
#ifndef END_NOT_RAISED
  atomic { DRAIN; ends++ };  /* WAIT-2 */
#else
  atomic { DRAIN };
#endif
  atomic { asleep[0] = false; asleep[1] = false }
}

proctype one_that_ends() {
  byte n = 0, look = 0;
  do
  :: n < 2 ->
#ifdef LOOK_BEFORE_END
    notify();
    store(0);
#else
    store(0);  /* WAIT-1: the end, then the look at the count */
    notify();
#endif
    n++;
    if :: n < 2 -> store(1) :: else -> skip fi  /* the next transaction */
  :: n == 2 -> break
  od;
  done = true
}

active proctype store_buffer() {
  do
  :: buffered -> atomic { DRAIN }
  :: done && !buffered -> break
  od
}

proctype one_that_waits(byte me) {
  byte seen = 0;
  atomic {
    count++;  /* a locked instruction */
#ifndef NO_HEAVY_FENCE
    if :: !fenced -> DRAIN :: else -> skip fi;  /* WAIT-1: membarrier drains the other's buffer */
#endif
  }
  do
  :: seen = ends;
#ifndef NO_SECOND_LOOK
    if :: inside == 0 -> break :: else -> skip fi;
#endif
    atomic {
#ifdef SLEEP_UNCOMPARED
      asleep[me] = true
#else
      /* futex: compares and sleeps in one step */
      if :: ends == seen -> asleep[me] = true :: else -> skip fi
#endif
    };
    asleep[me] == false;
#ifdef NO_SECOND_LOOK
    if :: inside == 0 -> break :: else -> skip fi
#endif
  od;
  count--;
  left[me] = true
}

init {
  atomic {
    if :: fenced = true :: fenced = false fi;
    run one_that_ends(); run one_that_waits(0); run one_that_waits(1)
  };
  timeout;
  assert(left[0] && left[1])
}
