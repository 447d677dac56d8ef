/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots beside transactions: perdure/engine/shadow/versions.hpp, saver.hpp and
 * open_snapshots.hpp. Two threads run transactions that store to two lines of one word and commit
 * or roll back. Two other threads open a snapshot each and close it at any time; one of them reads
 * line 0. In some runs there are three transactions of one store and one snapshot, in others two
 * transactions and two snapshots, and the second transaction may store to one line, to the other
 * and to the first one again. Memory is one entry or two, so entries are used again and snapshots
 * expire. Each entry is a chunk, which its thread leaves when it has stamped it. Heap ops (SNAP-7)
 * are not here, nor is the return of the memory after the last snapshot.
 *
 * The code's stores are releases and its loads are acquires: a thread that sees one of a thread's
 * stores sees all stores before it. So each load and each store is a step, in program order. What
 * happens under the list's lock is one step, and steps are one where no other thread can tell. The
 * fences between an update's begin and an opening (SNAP-5) are taken for granted; bias.pml has such
 * a pair over a store buffer.
 *
 * Holds: a snapshot reads what the last transaction up to its id left, unless it finds that it has
 * expired (SNAP-1 to SNAP-6); when nothing moves any more, all threads have ended. Built with one
 * of these it must fail: SKIPS_WHILE_OPENING, SAVER_IGNORES_LINE, SAVES_AFTER_GIVING_UP,
 * SAVES_AFTER_SKIPPING, STORED_BEFORE_PUSHED, STAMP_BEFORE_LINE, ENDED_BEFORE_STAMP,
 * STAMPED_AS_COMMITTED, NO_FIRST_WAIT, NO_SECOND_WAIT, NEEDED_USED_AGAIN, READER_IGNORES_LINE,
 * TAKES_NEWEST, FOLLOWS_STAMP_OF_NEXT, NO_SECOND_LOOK, LOOK_WITHOUT_STAMP, EXPIRED_AFTER_STORE,
 * EXPIRED_BEFORE_WORD. A rollback may stamp before it restores: the opening's second wait lasts
 * until it has restored, too.
 */
#define in_flight 255
#define always 255

byte clock = 0;

/* The lines. A word names the transaction that stored it, and which of its stores that was. */
byte word[2], head[2]; /* head: the newest entry; 0: none */
byte owned[2];         /* the owner's number + 1; 0: none */

/* the entries, from 1 on */
byte entries = 0;
byte stamp[3], before[3], line_of[3], next[3], saved[3];
byte taken[3]; /* the number + 1 of the thread whose transaction has not stamped it; 0: none */

/* the transactions */
byte transactions = 0, stores = 0, begun = 0;
byte update[2]; /* of each thread the transaction that is open; 0: none */

/* the snapshots */
byte mode = 0; /* S + 1 of the newest one, or always */
bool being_opened = false;
bool listed[2], opening[2], expired[2];
byte id[2];

/* for the assertions */
byte committed = 0, state = 0; /* of line 0: the newest, and what the snapshot is to read */
byte ended = 0;

#define OPEN(s) (listed[s] && !expired[s])
#ifdef SKIPS_WHILE_OPENING
#define MODE(s) (!OPEN(s) -> 0 : id[s] + 1)
#else
#define MODE(s) (!OPEN(s) -> 0 : (opening[s] -> always : id[s] + 1))
#endif
#define MAX(a, b) ((a) > (b) -> (a) : (b))
inline set_mode() {
  mode = MAX(MODE(0), MODE(1))
}

#define SERVED(s) (OPEN(s) && ((expires >> s) & 1) == 0)
#define OLDEST (!SERVED(1) -> 0 : (!SERVED(0) -> 1 : (id[0] <= id[1] -> 0 : 1)))
#ifdef NEEDED_USED_AGAIN
#define FREE(e) (e <= entries && taken[e] == 0)
#else
#define FREE(e) (e <= entries && taken[e] == 0 && stamp[e] <= 2 * id[OLDEST]) /* SNAP-1 */
#endif

/* The transaction saves nothing more: it stores to lines unsaved, so what it saved later could be
   its own words. A snapshot that is opened next may take its id at the clock at which the
   transaction was rolled back, and would read them. */
inline give_up() {
#ifndef SAVES_AFTER_GIVING_UP
  gave_up = true;
#endif
  first = 0; stamp_now = 0; saves = false
}

/* Takes an entry that no snapshot needs, for which the oldest ones expire where they must. Those
   not used yet are taken in order. */
inline claim() {
  do
  :: !SERVED(0) && !SERVED(1) -> give_up(); break
  :: else ->
    if
    :: FREE(1) -> entry = 1; taken[1] = me + 1; break
    :: FREE(2) && (taken[1] != 0 || stamp[1] != 0) -> entry = 2; taken[2] = me + 1; break
    :: !FREE(1) && !FREE(2) -> expires = expires | (1 << OLDEST)
    fi
  od
}
inline expire() {
  if :: expires & 1 -> expired[0] = true :: else fi;
  if :: expires & 2 -> expired[1] = true :: else fi;
  expires = 0;
  set_mode()
}

/* One of the snapshots that were open when the transaction began. Where a line's newest entry has a
   stamp above them all, the transaction stores to the line unsaved. If that entry is another line's
   later, none of them is left, and the transaction gives up. */
#define IS_LEFT(s) (OPEN(s) && id[s] < my_mode)

/* SNAP-3 */
inline look_at_newest() {
  if
  :: atomic { my_mode == 0 || gave_up }
  :: atomic { my_mode != 0 && !gave_up && head[line] == 0 -> saves = true }
  :: atomic {
      my_mode != 0 && !gave_up && head[line] != 0 ->
      first = head[line];
      stamp_now = stamp[first]
    };
    atomic {
      if
#ifndef SAVER_IGNORES_LINE
      :: line_of[first] != line -> /* it was used again */
        stamp_now = 0;
        saves = true;
#ifndef SAVES_AFTER_SKIPPING
        if
        :: my_mode != always && !IS_LEFT(0) && !IS_LEFT(1) -> give_up()
        :: else
        fi
#endif
#endif
      :: else -> /* what is in flight is its own */
        saves = stamp_now != in_flight && (my_mode == always || stamp_now <= 2 * (my_mode - 1));
        if :: !saves -> first = 0; stamp_now = 0 :: else fi
      fi
    }
  fi
}
inline push() {
#ifndef STAMP_BEFORE_LINE
  line_of[entry] = line;
#endif
  atomic {
    before[entry] = stamp_now;
    next[entry] = (stamp_now == 0 -> 0 : first);
    saved[entry] = word[line]
  };
  stamp[entry] = in_flight;
#ifdef STAMP_BEFORE_LINE
  line_of[entry] = line;
#endif
#ifdef STORED_BEFORE_PUSHED
  word[line] = n;
#endif
  atomic { head[line] = entry; entry = 0; first = 0; stamp_now = 0 } /* SNAP-2 */
}
inline save() {
  look_at_newest();
  if
  :: atomic {
      saves ->
      saves = false;
      claim();
#ifndef EXPIRED_AFTER_STORE
      expire() /* SNAP-6 */
#endif
    };
    if :: entry != 0 -> push() :: else fi
  :: else
  fi
}

#define MAY_OWN(i) (owned[i] == 0 || owned[i] == me + 1)
#define STORES_MORE (n % 4 == transactions && n / 4 + 1 < stores)
inline own(i) {
  line = i;
  if
  :: owned[i] == 0 -> owned[i] = me + 1; old[i] = word[i]
  :: else
  fi
}
inline end_ownership() {
  if :: owned[0] == me + 1 -> owned[0] = 0 :: else fi;
  if :: owned[1] == me + 1 -> owned[1] = 0 :: else fi
}

proctype updates(byte me) {
  byte n = 0, my_mode = 0, line = 0, first = 0, stamp_now = 0, entry = 0, expires = 0;
  byte old[2];
  bool saves = false, gave_up = false;
  do
  :: atomic {
      begun < transactions && (me == 0 || begun != 0) ->
      begun++;
      n = begun;
      update[me] = n
    };
    my_mode = mode;
    atomic { if :: MAY_OWN(0) -> own(0) :: MAY_OWN(1) -> own(1) fi };
    do
    :: save();
      word[line] = n;
#ifdef EXPIRED_AFTER_STORE
      atomic { expire() };
#endif
      if
      :: atomic { STORES_MORE && line == 0 && n < 4 && MAY_OWN(1) -> n = n + 4; own(1) }
      :: atomic { STORES_MORE && line == 1 && MAY_OWN(0) -> n = n + 4; own(0) }
      :: break
      fi
    od;
    if
    :: atomic { /* commits */
        clock++;
        stamp_now = 2 * clock;
        if :: owned[0] == me + 1 -> committed = word[0] :: else fi
      }
    :: /* rolls back */
      if :: owned[0] == me + 1 -> word[0] = old[0] :: else fi;
      if :: owned[1] == me + 1 -> word[1] = old[1] :: else fi;
#ifdef STAMPED_AS_COMMITTED
      stamp_now = 2 * clock
#else
      stamp_now = 2 * clock + 1 /* SNAP-4 */
#endif
    fi;
#ifdef ENDED_BEFORE_STAMP
    atomic { end_ownership() };
#endif
    do
    :: atomic { taken[1] == me + 1 -> stamp[1] = stamp_now; taken[1] = 0 }
    :: atomic { taken[2] == me + 1 -> stamp[2] = stamp_now; taken[2] = 0 }
    :: atomic {
        taken[1] != me + 1 && taken[2] != me + 1 ->
#ifndef ENDED_BEFORE_STAMP
        end_ownership();
#endif
        update[me] = 0;
        n = 0; my_mode = 0; line = 0; old[0] = 0; old[1] = 0; stamp_now = 0; gave_up = false;
        break
      }
    od
  :: begun >= transactions -> break
  od;
  ended++
}

inline wait_for_updates() {
  atomic { seen = update[0]; seen == 0 || update[0] != seen; seen = 0 };
  atomic { seen = update[1]; seen == 0 || update[1] != seen; seen = 0 }
}

/* SNAP-5 */
inline open() {
  atomic {
    !being_opened;
    being_opened = true;
    listed[me] = true;
    opening[me] = true;
    id[me] = clock; /* a lower bound of S */
    set_mode()
  };
#ifndef NO_FIRST_WAIT
  wait_for_updates();
#endif
  atomic { s = clock; if :: me == 0 -> state = committed :: else fi };
  atomic { id[me] = s; opening[me] = false; set_mode() };
#ifndef NO_SECOND_WAIT
  wait_for_updates();
#endif
  being_opened = false
}

/* The oldest entry of line 0 above the snapshot; 0: there is none. */
inline find() {
  first = head[0];
  if
  :: first != 0 ->
    stamp_now = stamp[first];
#ifdef READER_IGNORES_LINE
    if :: stamp_now > 2 * s -> at = first :: else fi
#else
    if
    :: atomic { stamp_now > 2 * s -> if :: line_of[first] == 0 -> at = first :: else fi }
    :: else
    fi
#endif
  :: else
  fi;
  do
#if defined(FOLLOWS_STAMP_OF_NEXT)
  :: atomic {
      at != 0 && next[at] != 0 && stamp[next[at]] > 2 * s && !expired[me] -> at = next[at]
    }
#elif !defined(TAKES_NEWEST)
  :: atomic { at != 0 && before[at] > 2 * s && next[at] != 0 && !expired[me] -> at = next[at] }
#endif
  :: else -> break
  od
}

proctype snapshots(byte me) {
  byte s = 0, seen = 0, first = 0, stamp_now = 0, at = 0, found = 0;
  bool lost = false;
  open();
  if
  :: me == 0 && !expired[me] ->
    do
    :: find();
#ifdef EXPIRED_BEFORE_WORD
      lost = expired[me];
#endif
      if
      :: at != 0 -> found = saved[at]; break
      :: else ->
        found = word[0];
#ifdef NO_SECOND_LOOK
        break;
#endif
        if
        :: head[0] == first ->
#ifdef LOOK_WITHOUT_STAMP
          break
#else
          if :: first == 0 || stamp[first] == stamp_now -> break :: else fi
#endif
        :: else
        fi;
        atomic { first = 0; stamp_now = 0; found = 0 }
      fi
    od;
#ifndef EXPIRED_BEFORE_WORD
    lost = expired[me]; /* SNAP-6 */
#endif
    atomic {
      assert(lost || found == state);
      first = 0; stamp_now = 0; at = 0; found = 0; lost = false;
      begun = transactions /* nothing is read any more */
    }
  :: else
  fi;
  atomic { listed[me] = false; set_mode(); s = 0; ended++ }
}

init {
  atomic {
    if
    :: transactions = 3; stores = 1; entries = 2; ended++
    :: transactions = 2; stores = 3; entries = 2; run snapshots(1)
    :: transactions = 2; stores = 1; entries = 1; run snapshots(1)
    fi;
    run updates(0); run updates(1); run snapshots(0)
  };
  timeout;
  assert(ended == 4)
}
