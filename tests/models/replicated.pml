/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who may append to a replicated log: perdure/replication/stream.hpp. Two nodes have a copy of the
 * pool each. A node reads the log to its end and appends a TERM frame to become the primary; a
 * primary commits transactions and appends them, up to two frames under way at a time. The log
 * appends a frame at the place that it names, or refuses it. An append may arrive late, or never,
 * and its answer may be lost; one node crashes and goes on.
 *
 * Holds: a transaction that was acknowledged is in the log's history for ever; a new primary has
 * exactly that history; each transaction's frame counts once, in exactly the state in which the
 * transaction ran (STREAM-1 to STREAM-5). Built with one of these it must fail: NO_TERMS,
 * ACKNOWLEDGE_OVER_A_HOLE, NO_CATCHING_UP, RESTART_WITHOUT_TERM, GUESS_THE_OUTCOME, KEEP_DIVERGED.
 * NO_TERMS holds with one frame under way (ONE_AT_A_TIME).
 */
#ifdef KEEP_DIVERGED /* a transaction of the other one between two of this one's terms */
#define PLACES 5
#define VALUES 2
#else
#ifdef ACKNOWLEDGE_OVER_A_HOLE
#define VALUES 4
#endif
#endif
#ifndef PLACES /* -DVALUES=4 holds, too: 18,865,252 states */
#define PLACES 4
#endif
#ifndef VALUES
#define VALUES 2
#endif
#define TERMS 3
#define BIT(v) (1 << ((v) - 1))

#define FREE 0
#define UNDER_WAY 1
#define APPENDED 2
#define REFUSED 3

/* The log. A frame with value 0 is a TERM. `prev` stands for the chain: the place after that of the
 * last frame that counted for its writer. */
byte size, term[PLACES], prev[PLACES], val[PLACES], who[PLACES];

/* What counts, as it is appended. */
byte all_top, all_last, all_history;
byte begins_with[TERMS + 1]; /* the history at each TERM, plus 1 */

byte in_state[VALUES + 1]; /* the state in which the transaction ran */
byte next_value = 1;

/* Appends under way, two slots for each node. */
byte f_at[4], f_term[4], f_prev[4], f_val[4], f_state[4];
bool f_waited[4];

#ifdef NO_TERMS
#define COUNTS(t, p, v, top, last) ((v) != 0 || (t) > (top))
#else
/* STREAM-2 */
#define COUNTS(t, p, v, top, last) ((p) == (last) && ((v) == 0 && (t) > (top) || (v) != 0 && (t) == (top)))
#endif

inline clear(i) { /* fewer states */
  f_at[i] = 0;
  f_term[i] = 0;
  f_prev[i] = 0;
  f_val[i] = 0
}

inline arrive(i) {
  if
  :: f_at[i] == size && size < PLACES ->
    term[size] = f_term[i];
    prev[size] = f_prev[i];
    val[size] = f_val[i];
    who[size] = i / 2;
    if
    :: COUNTS(f_term[i], f_prev[i], f_val[i], all_top, all_last) ->
      all_last = size + 1;
      if
      :: f_val[i] == 0 -> all_top = f_term[i]; begins_with[all_top] = all_history + 1
      :: else ->
        assert(all_history == in_state[f_val[i]]);
        all_history = all_history | BIT(f_val[i])
      fi
    :: else -> skip
    fi;
    size++;
    f_state[i] = APPENDED
  :: else -> f_state[i] = REFUSED
  fi;
  clear(i);
  if :: !f_waited[i] -> f_state[i] = FREE :: else -> skip fi
}

#define ARRIVES(i)                                                            \
  atomic { f_state[i] == UNDER_WAY -> arrive(i) }                             \
  :: atomic { f_state[i] == UNDER_WAY && !f_waited[i] -> clear(i); f_state[i] = FREE }

active proctype network() {
  do
  :: ARRIVES(0)
  :: ARRIVES(1)
  :: ARRIVES(2)
  :: ARRIVES(3)
  od
}

#define READER 0
#define CANDIDATE 1
#define PRIMARY 2
#define NONE 9

#define SLOT (f_state[me * 2] == FREE -> me * 2 : (f_state[me * 2 + 1] == FREE -> me * 2 + 1 : NONE))

inline send(slot, at, t, p, v) {
  f_at[slot] = at;
  f_term[slot] = t;
  f_prev[slot] = p;
  f_val[slot] = v;
  f_state[slot] = UNDER_WAY;
  f_waited[slot] = true
}

/* Nobody waits for the slot's answer any more. */
inline forget(slot) {
  if
  :: slot != NONE ->
    f_waited[slot] = false;
    if :: f_state[slot] != UNDER_WAY -> f_state[slot] = FREE :: else -> skip fi;
    slot = NONE
  :: else -> skip
  fi
}

/* The oldest frame counts: its transaction is acknowledged, if this node is the primary. */
inline shift() {
  assert(all_history & BIT(q0));
  history = history | BIT(q0);
  q0 = q1;
  q1 = 0;
  s0 = s1;
  s1 = NONE
}

inline read_one() {
  if
  :: COUNTS(term[pos], prev[pos], val[pos], top, last) ->
    last = pos + 1;
    if
    :: val[pos] == 0 ->
      top = term[pos];
      if
      :: who[pos] != me ->
        role = READER;
#ifndef KEEP_DIVERGED
        q0 = 0; /* STREAM-5: made anew from the log */
        q1 = 0
#endif
      :: else -> skip
      fi
    :: val[pos] != 0 && val[pos] == q0 -> shift()
    :: else -> history = history | BIT(val[pos])
    fi
  :: else -> skip
  fi;
  pos++
}

proctype node(byte me) {
  byte pos, top, last, history; /* what it has read */
  byte q0, q1;                  /* committed here, and not known to be in the log */
  byte s0 = NONE, s1 = NONE;    /* their appends; s0 of a candidate: its TERM's */
  byte role = READER, crashes = me;
  bool asks;
  do
  :: atomic { role == READER && pos < size -> read_one() }
#ifdef NO_CATCHING_UP
  :: atomic {
      role == READER && top < TERMS && SLOT != NONE ->
      pos = size;
#else
  :: atomic { /* STREAM-3 */
      role == READER && pos == size && top < TERMS && SLOT != NONE ->
#endif
      s0 = SLOT;
      send(s0, pos, top + 1, last, 0);
      role = CANDIDATE
    }
  :: atomic {
      role == CANDIDATE && f_state[s0] == APPENDED ->
      forget(s0);
      pos++;
      last = pos;
      top++;
      role = PRIMARY;
      asks = false;
      assert(begins_with[top] == history + 1)
    }
  :: atomic { role == CANDIDATE && f_state[s0] != APPENDED -> forget(s0); role = READER }
  :: atomic {
      role == PRIMARY && next_value <= VALUES && q1 == 0 ->
      if
      :: q0 == 0 -> in_state[next_value] = history; q0 = next_value
      :: else -> in_state[next_value] = history | BIT(q0); q1 = next_value
      fi;
      next_value++
    }
  :: atomic {
      role == PRIMARY && !asks && q0 != 0 && s0 == NONE && SLOT != NONE ->
      s0 = SLOT;
      send(s0, pos, top, last, q0)
    }
#ifndef ONE_AT_A_TIME
  :: atomic {
      role == PRIMARY && !asks && q1 != 0 && s0 != NONE && s1 == NONE && SLOT != NONE ->
      s1 = SLOT;
      send(s1, pos + 1, top, pos + 1, q1)
    }
#endif
  :: atomic { /* STREAM-4 */
      role == PRIMARY && s0 != NONE && f_state[s0] == APPENDED ->
      forget(s0);
      shift();
      pos++;
      last = pos
    }
#ifdef ACKNOWLEDGE_OVER_A_HOLE
  :: atomic {
      role == PRIMARY && s1 != NONE && f_state[s1] == APPENDED ->
      assert(all_history & BIT(q1))
    }
#endif
  :: atomic { /* refused, or no answer in time: what is at that place? */
      role == PRIMARY && s0 != NONE && f_state[s0] != APPENDED ->
#ifdef GUESS_THE_OUTCOME
      if :: f_state[s0] == UNDER_WAY -> pos = size :: else -> asks = true fi;
#else
      asks = true;
#endif
      forget(s0);
      forget(s1)
    }
  :: atomic { role == PRIMARY && asks && pos < size -> read_one() }
  :: atomic { role == PRIMARY && asks && pos == size -> asks = false }
  :: atomic {
      crashes == 0 ->
      crashes++;
      forget(s0);
      forget(s1);
      asks = false;
#ifdef RESTART_WITHOUT_TERM
      if :: role == PRIMARY -> pos = size :: else -> role = READER fi
#else
      role = READER
#endif
    }
  od
}

init {
  atomic { run node(0); run node(1) }
}
