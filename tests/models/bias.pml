/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Views that read plainly, by their thread's grant or by the shared bias, and a thread that changes
 * the bias to store two words and back: perdure/tm/orec_tm.hpp. The viewing thread's stores wait in
 * a store buffer, which drains at any time, at the thread's own locked instructions, and at the
 * changing thread's membarrier(2).
 *
 * Holds: a plain view sees both words as of one time (BIAS-1, GRANT-1), and when nothing moves any
 * more both threads have ended. Built with one of these it must fail: NO_TAKING_BACK,
 * TAKEN_AFTER_FENCE, NO_HEAVY_FENCE, NO_WAIT, GIVEN_WITHOUT_LOCK, GIVEN_BEFORE_BIAS,
 * ACTIVE_AFTER_LOOK.
 */
#define none 0
#define shared 1
#define changing 2

byte inside = 0;       /* memory: 1 while the viewing thread is inside */
bool buffered = false; /* the viewing thread's store buffer, of one entry */
byte value = 0;
byte grant = 1, bias = shared;
bool locked = false;
byte x = 0, y = 0;
bool viewed = false, changed = false;

#define DRAIN if :: buffered -> inside = value; buffered = false :: else -> skip fi

inline store(v) {
  atomic { DRAIN; buffered = true; value = v }
}
inline lock() {
  atomic { !locked; locked = true }
}
inline plain_view() {
  seen = x;
  assert(seen == y)
}

active proctype store_buffer() {
  do
  :: buffered -> atomic { DRAIN }
  :: viewed && !buffered -> break
  od
}

active proctype views() {
  byte n = 0, seen = 0;
  bool may = false;
  do
  :: n < 3 ->
#ifdef ACTIVE_AFTER_LOOK
    may = (grant == 1);
    store(1);
#else
    store(1); /* GRANT-1: active, then the look at the grant */
    may = (grant == 1);
#endif
    if
    :: may -> plain_view(); store(0)
    :: else ->
      store(0);
      /* the begin of a transaction: it asks for a grant, then looks at the bias */
#ifdef GIVEN_WITHOUT_LOCK
      if :: bias == shared -> grant = 1 :: else -> skip fi;
#else
      atomic { !locked; locked = true; DRAIN };
      if :: bias == shared -> grant = 1 :: else -> skip fi;
      locked = false;
#endif
      store(1);
      if
      :: bias == shared -> plain_view()
      :: else -> skip /* ownership records, or it waits for the change */
      fi;
      store(0)
    fi;
    n++
  :: n == 3 -> break
  od;
  viewed = true
}

inline change(wanted) {
  lock();
  bias = changing;
#ifndef NO_TAKING_BACK
#ifndef TAKEN_AFTER_FENCE
  grant = 0;
#endif
#endif
#ifndef NO_HEAVY_FENCE
  atomic { DRAIN };
#endif
#ifdef TAKEN_AFTER_FENCE
  grant = 0;
#endif
#ifdef GIVEN_BEFORE_BIAS
  if :: wanted == none -> grant = 1 :: else -> skip fi;
#endif
#ifndef NO_WAIT
  inside == 0; /* the thread is between transactions */
#endif
  bias = wanted;
  if :: wanted == shared -> grant = 1 :: else -> skip fi;
  locked = false
}

active proctype changes() {
  byte n = 0;
  do
  :: n < 2 ->
    change(none);
    x++; /* an update under ownership records */
    y++;
    change(shared);
    n++
  :: n == 2 -> break
  od;
  changed = true
}

init {
  timeout;
  assert(viewed && changed)
}
