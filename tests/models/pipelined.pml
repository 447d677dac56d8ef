/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decoupled engine under the pipelined order (docs/architecture.md): Perform draws ids and
 * changes the mapping, Persist writes groups to one ring and acknowledges, Reproduce copies the
 * mapping to the data region and releases records. The power is cut at any instant, with caches
 * that have written back any of their lines; so is recovery, which then runs once more.
 *
 * Each transaction n stores n to both words of the pool. A state is therefore whole when both are
 * equal, and nothing acknowledged is lost when they are not below `durable`.
 *
 * Built with one of these it must fail: ACKNOWLEDGE_EARLY, COPY_WITHOUT_WAITING, DATA_UNFENCED,
 * TRUNCATE_EARLY, ACCEPT_OLD_RECORDS, RECOVERY_GIVES_UP_EARLY. run_models.py does all of that.
 */
#define TRANSACTIONS 4
#define SLOTS 2       /* records that the ring holds */
#define NOTHING 255

/* DRAM: gone after a power cut */
/* the last id drawn; both words of the view hold it: isolation ends at once */
byte clock = 0;
byte durable = 0;     /* acknowledged */
byte tail = 0;        /* records written, ever */
byte head = 0;        /* of them given up */
bool cut = false;

/* the medium: what is durable, and what was stored since (NOTHING: no more than that) */
/* number of the record in the slot, counted from 1; 0: none */
byte record_d[SLOTS], record_p[SLOTS];
byte last_d[SLOTS], last_p[SLOTS];       /* the last id in it */
byte data_d[2], data_p[2];
byte x_d = 0, x_p = NOTHING;             /* header: the data region holds every id up to it ... */
/* ... and the first record that counts (one line: both or neither) */
byte head_d = 0, head_p = NOTHING;

inline fence_home() {
  d_step {
    if :: data_p[0] != NOTHING -> data_d[0] = data_p[0] :: else fi;
    if :: data_p[1] != NOTHING -> data_d[1] = data_p[1] :: else fi;
    data_p[0] = NOTHING; data_p[1] = NOTHING
  }
}
inline fence_header() {
  d_step {
    if :: x_p != NOTHING -> x_d = x_p; head_d = head_p :: else fi;
    x_p = NOTHING; head_p = NOTHING
  }
}

proctype perform() provided (!cut) {
  do
  :: clock < TRANSACTIONS -> clock++
  :: else -> break
  od
}

proctype persist() provided (!cut) {
  byte to;
  do
  :: durable == TRANSACTIONS -> break
  :: durable < clock && tail - head < SLOTS ->
     to = durable + 1;
     if :: to < clock -> to++ :: skip fi;      /* a group of two, or not */
     d_step { record_p[tail % SLOTS] = tail + 1; last_p[tail % SLOTS] = to }
#ifdef ACKNOWLEDGE_EARLY
     durable = to;
#endif
     d_step {                                  /* the fence */
       record_d[tail % SLOTS] = record_p[tail % SLOTS]; last_d[tail % SLOTS] = last_p[tail % SLOTS];
       record_p[tail % SLOTS] = NOTHING; last_p[tail % SLOTS] = NOTHING;
       tail++
     }
     durable = to
  od
}

proctype reproduce() provided (!cut) {
  byte x, first, copy0, copy1, seen;
  do
  :: durable == TRANSACTIONS && head == tail -> break
  :: durable > 0 ->
     d_step {                                  /* the first record that holds an id above x */
       x = durable; first = head;
       do
       :: first < tail && last_d[first % SLOTS] <= x -> first++
       :: else -> break
       od
     };
     /* the lines are copied one after the other, beside transactions */
     copy0 = clock;
     copy1 = clock;
     seen = clock;
#ifndef COPY_WITHOUT_WAITING
     (durable >= seen);
#endif
     data_p[0] = copy0;
     data_p[1] = copy1;
#ifndef DATA_UNFENCED
     fence_home();
#endif
#ifdef TRUNCATE_EARLY
     head = first;
#endif
     d_step { x_p = x; head_p = first };
     fence_header();
     head = first
  od
}

/* What a power cut leaves of a word, a slot, a header. */
inline settle() {
  i = 0;
  do
  :: i < 2 ->
     if
     :: data_p[i] != NOTHING -> data_d[i] = data_p[i]
     :: true
     fi;
     data_p[i] = NOTHING; i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < SLOTS ->
     if
     :: record_p[i] != NOTHING -> record_d[i] = record_p[i]; last_d[i] = last_p[i]
     :: record_p[i] != NOTHING -> record_d[i] = 0          /* torn: its checksum fails */
     :: true
     fi;
     record_p[i] = NOTHING; last_p[i] = NOTHING; i++
  :: else -> break
  od;
  if
  :: x_p != NOTHING -> x_d = x_p; head_d = head_p
  :: true
  fi;
  x_p = NOTHING; head_p = NOTHING; i = 0
}

/* The data region from the records that count. At any of its steps it may be cut short. */
inline recover(again) {
  r = head_d; newest = x_d;
  do
  :: (
#ifdef ACCEPT_OLD_RECORDS
      record_d[r % SLOTS] != 0
#else
      record_d[r % SLOTS] == r + 1       /* its position is in its checksum */
#endif
      && r < head_d + SLOTS) ->
     newest = last_d[r % SLOTS];
     data_p[0] = newest;
     if :: again -> goto again_out :: true fi;
     data_p[1] = newest;
     if :: again -> goto again_out :: true fi;
     r++
  :: else -> break
  od;
#ifdef RECOVERY_GIVES_UP_EARLY
  atomic { x_p = newest; head_p = r };
  if :: again -> goto again_out :: true fi;
#endif
  if :: again -> goto again_out :: true fi;
  fence_home();
  atomic { x_p = newest; head_p = r };
  if :: again -> goto again_out :: true fi;
  fence_header()
}

proctype power() {
  byte i = 0, r = 0, newest = 0;
  cut = true;                        /* at any instant: the others stop */
  settle();
  recover(true);
again_out:
  settle();
  recover(false);
  assert(data_d[0] == data_d[1]);    /* whole transactions, a prefix of them */
  assert(data_d[0] >= durable)       /* with all that was acknowledged */
}

init {
  d_step {
    record_p[0] = NOTHING; record_p[1] = NOTHING; last_p[0] = NOTHING; last_p[1] = NOTHING;
    data_p[0] = NOTHING; data_p[1] = NOTHING
  };
  atomic { run perform(); run persist(); run reproduce(); run power() }
}
