/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decoupled engine under the strict order (docs/architecture.md): one ring per thread,
 * isolation held through the fence, checkpoints of owned words while transactions run, X from the
 * ids still in flight. The power is cut at any instant, also in recovery, with caches that have
 * written back any of their lines.
 *
 * Thread 0's n-th transaction stores n to a and b, and to the heap's bits. Thread 1's reads a and
 * stores that to c. Recovery must give: a == b == bits (whole transactions), c <= a (no transaction
 * that had read what is lost), and of each thread at least what was acknowledged to it.
 *
 * Built with one of these it must fail: RELEASE_BEFORE_FENCE, ACKNOWLEDGE_EARLY, QUIET_IS_CLOCK,
 * COPY_OWNED, TRUNCATE_EARLY, DATA_UNFENCED. run_models.py does all of that.
 */
#define FIRST 2       /* transactions of thread 0 */
#define SECOND 1      /* of thread 1 */
#define SLOTS 1       /* records that a ring holds */
#define NOTHING 255

/* DRAM */
byte a = 0, b = 0, c = 0;
/* the heap's: nobody owns them; set once the record is durable */
byte bits = 0;
bool owned[2];                            /* a and b; c */
byte clock = 0;
/* the id of a thread between its draw and its fence; 0: none */
byte pending[2];
byte tail[2], head[2];                    /* records written to each ring, and given up */
byte told[2];                             /* acknowledged: thread 0's n, thread 1's value */
bool cut = false;

/* The medium: durable, and stored since then (NOTHING: nothing stored since). Slot s of ring r is
 * at r * SLOTS + s. */
byte number_d[2], number_p[2], id_d[2], id_p[2], value_d[2], value_p[2];
byte data_d[4], data_p[4];
byte x_d = 0, x_p = NOTHING;
byte head_d[2], head_p[2];

#define AT(r) (r * SLOTS + tail[r] % SLOTS)

inline draw(r) { d_step { clock++; pending[r] = clock } }
inline append(r, v) {
  d_step { number_p[AT(r)] = tail[r] + 1; id_p[AT(r)] = pending[r]; value_p[AT(r)] = v }
}
inline fence_ring(r) {
  d_step {
    number_d[AT(r)] = number_p[AT(r)]; id_d[AT(r)] = id_p[AT(r)]; value_d[AT(r)] = value_p[AT(r)];
    number_p[AT(r)] = NOTHING;
    tail[r]++
  }
}
inline fence_home() {
  d_step {
    if :: data_p[0] != NOTHING -> data_d[0] = data_p[0] :: else fi;
    if :: data_p[1] != NOTHING -> data_d[1] = data_p[1] :: else fi;
    if :: data_p[2] != NOTHING -> data_d[2] = data_p[2] :: else fi;
    if :: data_p[3] != NOTHING -> data_d[3] = data_p[3] :: else fi;
    data_p[0] = NOTHING; data_p[1] = NOTHING; data_p[2] = NOTHING; data_p[3] = NOTHING
  }
}
inline fence_header() {
  d_step {
    if :: x_p != NOTHING -> x_d = x_p; head_d[0] = head_p[0]; head_d[1] = head_p[1] :: else fi;
    x_p = NOTHING
  }
}
/* The first record of ring r that holds an id above x. */
inline after(r, f) {
  f = head[r];
  do
  :: f < tail[r] && id_d[r * SLOTS + f % SLOTS] <= x -> f++
  :: else -> break
  od
}

proctype first() provided (!cut) {
  byte n = 0;
  do
  :: n == FIRST -> break
  :: n < FIRST && tail[0] - head[0] < SLOTS ->
     n++;
     owned[0] = true;
     a = n;
     b = n;
     draw(0);
#ifdef RELEASE_BEFORE_FENCE
     owned[0] = false;
#endif
     append(0, n);
#ifdef ACKNOWLEDGE_EARLY
     told[0] = n;
#endif
     fence_ring(0);
     bits = n;                              /* before X may cover this id */
     pending[0] = 0;
     owned[0] = false;
     told[0] = n
  od
}

proctype second() provided (!cut) {
  byte n = 0, v;
  do
  :: n == SECOND -> break
  :: n < SECOND && tail[1] - head[1] < SLOTS ->
     n++;
     owned[1] = true;
     atomic { !owned[0] -> v = a }          /* what is owned is not read */
     c = v;
     draw(1);
     append(1, v);
     fence_ring(1);
     pending[1] = 0;
     owned[1] = false;
     told[1] = v
  od
}

proctype reproduce() provided (!cut) {
  byte x, h0, h1, copies = 0;
  do
  :: copies == 2 -> break
  :: copies < 2 ->
     copies++;
     d_step {                               /* X: every id up to it has finished its commit */
       x = clock;
#ifndef QUIET_IS_CLOCK
       if :: pending[0] != 0 && pending[0] <= x -> x = pending[0] - 1 :: else fi;
       if :: pending[1] != 0 && pending[1] <= x -> x = pending[1] - 1 :: else fi
#endif
     };
#ifdef COPY_OWNED
     data_p[3] = bits; data_p[0] = a; data_p[1] = b; data_p[2] = c;
#else
     data_p[3] = bits;
     atomic { !owned[0] -> data_p[0] = a };  /* lines of one transaction may be copied apart */
     atomic { !owned[0] -> data_p[1] = b };
     atomic { !owned[1] -> data_p[2] = c };
#endif
#ifndef DATA_UNFENCED
     fence_home();
#endif
     d_step { after(0, h0); after(1, h1) };
#ifdef TRUNCATE_EARLY
     head[0] = h0; head[1] = h1;
#endif
     d_step { x_p = x; head_p[0] = h0; head_p[1] = h1 };
     fence_header();
     head[0] = h0;
     head[1] = h1
  od
}

/* What a power cut leaves. */
inline settle() {
  i = 0;
  do
  :: i < 4 ->
     if :: data_p[i] != NOTHING -> data_d[i] = data_p[i] :: true fi;
     data_p[i] = NOTHING; i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < 2 ->
     if
     :: number_p[i] != NOTHING ->
        number_d[i] = number_p[i]; id_d[i] = id_p[i]; value_d[i] = value_p[i]
     :: number_p[i] != NOTHING -> number_d[i] = 0           /* torn */
     :: true
     fi;
     number_p[i] = NOTHING; i++
  :: else -> break
  od;
  if :: x_p != NOTHING -> x_d = x_p; head_d[0] = head_p[0]; head_d[1] = head_p[1] :: true fi;
  x_p = NOTHING; i = 0
}

/* Replays every whole record above X; gaps between rings are allowed. It may be interrupted at any
 * of its steps. */
inline recover(again) {
  r = 0;
  do
  :: r < 2 ->
     f = head_d[r];
     do
     :: f < head_d[r] + SLOTS && number_d[r * SLOTS + f % SLOTS] == f + 1 ->
        if
        :: id_d[r * SLOTS + f % SLOTS] > x_d && r == 0 ->
           data_p[0] = value_d[f % SLOTS];
           if :: again -> goto again_out :: true fi;
           data_p[1] = value_d[f % SLOTS];
           data_p[3] = value_d[f % SLOTS]
        :: id_d[r * SLOTS + f % SLOTS] > x_d && r == 1 -> data_p[2] = value_d[SLOTS + f % SLOTS]
        :: else
        fi;
        if :: again -> goto again_out :: true fi;
        f++
     :: else -> break
     od;
     r++
  :: else -> break
  od;
  if :: again -> goto again_out :: true fi;
  fence_home()
}

proctype power() {
  byte i = 0, r = 0, f = 0;
  cut = true;
  settle();
  recover(true);
again_out:
  settle();
  recover(false);
  assert(data_d[0] == data_d[1] && data_d[0] == data_d[3]);
  assert(data_d[0] >= told[0]);
  assert(data_d[2] >= told[1]);
  assert(data_d[2] <= data_d[0])
}

init {
  d_step {
    number_p[0] = NOTHING; number_p[1] = NOTHING;
    data_p[0] = NOTHING; data_p[1] = NOTHING; data_p[2] = NOTHING; data_p[3] = NOTHING
  };
  atomic { run first(); run second(); run reproduce(); run power() }
}
