/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hardware transactions whose records become durable after they are visible (shadow/htm:
 * perdure/engine/shadow/htm.hpp, perdure/log/dependencies.hpp). Three threads with a ring each and
 * a transaction each, or two threads with three transactions beside a checkpoint. Each reads one of
 * two words and stores its number to one. A transaction draws its timestamp while it owns both
 * words, and becomes visible later (XEND); tm/htm.pml is about that part. Then it looks at what the
 * other rings show, one after another, names what is open, appends its record, fences, and waits
 * for what it has named. A checkpoint copies marked words beside all this. The power is cut at any
 * instant: of what was not fenced each part may be there. Recovery is cut short once and runs
 * again.
 *
 * Checked: what was acknowledged is there (LAW-2); with each transaction all that it had read or
 * overwritten (LAW-1); and each word has what its last writer of those stored (DEPEND-2).
 *
 * Built with one of these it must fail: NAMES_NOTHING, LOOKS_BEFORE_TRY, SHOWN_AFTER_XEND,
 * WAITS_FOR_NOTHING, ACKNOWLEDGED_AT_FENCE, RING_GOES_ON, KEEPS_ALL, KEEPS_WHAT_NAMES_DROPPED,
 * REPLAYS_RING_BY_RING, BATCH_GOES_AT_ONCE, BOUND_IS_CLOCK, MARKS_AFTER_PENDING,
 * HEADER_BEFORE_DATA. run_models.py does all of that.
 */
#define ALL 4              /* transactions: thread 0 has 0 and 1, thread 1 has 2, thread 2 has 3 */
#define THREADS 3
#define NOTHING 255
#define BIT(k) (1 << (k))

/* DRAM */
byte word[2];                 /* 1 + the last writer; 0: none */
bool owned[2], mark[2];
byte clock = 0;
byte pending[THREADS];        /* a lower bound of the timestamp; 0: none */
byte committed[THREADS];      /* 1 + the ring's newest visible transaction */
byte acknowledged[THREADS];   /* 1 + its newest acknowledged one */
bool cut = false;

/* of each transaction */
byte stamp[ALL], names[ALL];
byte record[ALL];             /* 0: none; 1: stored; 2: durable, by its fence or a cache before */

/* The medium's data region, and its header's checkpoint id. */
byte data_d[2], x_d = 0;

/* What only the check looks at. */
byte target[ALL], place[ALL], depends[ALL], places = 0, told = 0;

#define PENDING_ABOVE(c) ((pending[0] == 0 || pending[0] > c) && (pending[1] == 0 || \
                          pending[1] > c) && (pending[2] == 0 || pending[2] > c))

/* what ring u shows: is it open, below the own timestamp, and to be named? */
inline look(k, u) {
  c = committed[u];
  if
#ifdef LOOKS_BEFORE_TRY
  :: c != 0 ->
#else
  :: c != 0 && stamp[c - 1] < stamp[k] ->
#endif
     d_step { if :: acknowledged[u] < c -> names[k] = names[k] | BIT(c - 1) :: else fi }
  :: else
  fi;
  c = 0
}
inline look_at_others(k, t) {
#ifndef NAMES_NOTHING
  look(k, (t + 1) % THREADS);
  look(k, (t + 2) % THREADS)
#else
  skip
#endif
}
inline wait_for_named(k) {
#ifndef WAITS_FOR_NOTHING
  /* a transaction that is named is the newest of its ring, or was acknowledged */
  (names[k] & BIT(0)) == 0 || acknowledged[0] >= 1;
  (names[k] & BIT(1)) == 0 || acknowledged[0] >= 2;
  (names[k] & BIT(2)) == 0 || acknowledged[1] >= 3;
  (names[k] & BIT(3)) == 0 || acknowledged[2] >= 4
#else
  skip
#endif
}

inline transact(k, t) {
  if                                             /* the words are alike; some pairs suffice */
  :: d_step { pending[t] = clock + 1; r = 0; q = 0 }
  :: d_step { k != 0 -> pending[t] = clock + 1; r = 1; q = 1 }
  :: d_step { k == 2 -> pending[t] = clock + 1; r = 1; q = 0 }
  :: d_step { k == 3 -> pending[t] = clock + 1; r = 0; q = 1 }
  fi;
#ifdef LOOKS_BEFORE_TRY
  look_at_others(k, t);
#endif
  /* the try, with all its lines and the timestamp */
  atomic { !owned[r] && !owned[q] -> owned[r] = true; owned[q] = true; clock++; stamp[k] = clock };
  d_step {                                       /* XEND */
    target[k] = q; places++; place[k] = places;
    depends[k] = BIT(k);
    if :: word[r] != 0 -> depends[k] = depends[k] | depends[word[r] - 1] :: else fi;
    if :: word[q] != 0 -> depends[k] = depends[k] | depends[word[q] - 1] :: else fi;
    word[q] = k + 1;
#ifndef SHOWN_AFTER_XEND
    committed[t] = k + 1;
#endif
    owned[r] = false; owned[q] = false
  };
#ifdef SHOWN_AFTER_XEND
  committed[t] = k + 1;
#endif
#ifndef MARKS_AFTER_PENDING
  mark[q] = true;
#endif
#ifndef LOOKS_BEFORE_TRY
  look_at_others(k, t);
#endif
#ifdef RING_GOES_ON
  if :: k == 0 -> pending[t] = 0; goto second :: else fi;
#endif
  if :: record[k] = 1 :: record[k] = 2 fi;        /* is it written back before the fence? */
  record[k] = 2;                                 /* the fence */
#ifdef ACKNOWLEDGED_AT_FENCE
  acknowledged[t] = k + 1;
#endif
  wait_for_named(k);
  d_step { acknowledged[t] = k + 1; told = told | BIT(k) };
  pending[t] = 0;
#ifdef MARKS_AFTER_PENDING
  mark[q] = true;
#endif
  d_step { r = 0; q = 0 }
}

proctype thread0(bool twice) provided (!cut) {
  byte r = 0, q = 0, c = 0;
  transact(0, 0);
second:
  if :: twice -> transact(1, 0) :: else fi
}
proctype thread1() provided (!cut) { byte r = 0, q = 0, c = 0; transact(2, 1); second: skip }
proctype thread2() provided (!cut) { byte r = 0, q = 0, c = 0; transact(3, 2); second: skip }

proctype checkpoint() provided (!cut) {
  byte x = 0, now = 0, copy[2] = NOTHING;
#ifdef BOUND_IS_CLOCK
  x = clock;
#else
  x = clock;                                     /* complete(): the time first */
  d_step { if :: pending[0] != 0 && pending[0] <= x -> x = pending[0] - 1 :: else fi };
  d_step { if :: pending[1] != 0 && pending[1] <= x -> x = pending[1] - 1 :: else fi };
  d_step { if :: pending[2] != 0 && pending[2] <= x -> x = pending[2] - 1 :: else fi };
#endif
  d_step { if :: mark[0] -> mark[0] = false; copy[0] = word[0] :: else fi };
  d_step { if :: mark[1] -> mark[1] = false; copy[1] = word[1] :: else fi };
  now = clock;
#ifndef BATCH_GOES_AT_ONCE
  PENDING_ABOVE(now);
#endif
  /* written back before the fence, which comes then: neither, one, or both */
#ifdef HEADER_BEFORE_DATA
  x_d = x;
#endif
  if
  :: copy[0] != NOTHING -> data_d[0] = copy[0]
  :: copy[1] != NOTHING -> data_d[1] = copy[1]
  :: true
  fi;
  d_step {
    if :: copy[0] != NOTHING -> data_d[0] = copy[0] :: else fi;
    if :: copy[1] != NOTHING -> data_d[1] = copy[1] :: else fi;
    copy[0] = NOTHING; copy[1] = NOTHING; now = 0
  };
  d_step { x_d = x; x = 0 }
}

/* Which records count: one pass in the order of the timestamps (DEPEND-1). */
inline decide() {
  kept = 0; present = 0;
  for (k : 0 .. ALL - 1) {
    if :: record[k] == 2 -> present = present | BIT(k) :: else fi
  };
  for (v : 1 .. ALL) {
    for (k : 0 .. ALL - 1) {
      if
      :: stamp[k] == v && record[k] == 2 && v > x_d ->
         needs = 0;
         for (n : 0 .. ALL - 1) {
           if :: (names[k] & BIT(n)) != 0 && stamp[n] > x_d -> needs = needs | BIT(n) :: else fi
         };
#ifdef KEEPS_ALL
         kept = kept | BIT(k)
#else
#ifdef KEEPS_WHAT_NAMES_DROPPED
         if :: (needs & ~present) == 0 -> kept = kept | BIT(k) :: else fi
#else
         if :: (needs & ~kept) == 0 -> kept = kept | BIT(k) :: else fi
#endif
#endif
      :: else
      fi
    }
  }
}
inline replay() {
#ifdef REPLAYS_RING_BY_RING
  for (k : 0 .. ALL - 1) {
    if :: (kept & BIT(k)) != 0 -> data_d[target[k]] = k + 1 :: else fi
  }
#else
  for (v : 1 .. ALL) {
    for (k : 0 .. ALL - 1) {
      if :: stamp[k] == v && (kept & BIT(k)) != 0 -> data_d[target[k]] = k + 1 :: else fi
    }
  }
#endif
}

/* The cut, and every recovery after it, in one step; no process runs any more. */
proctype power() {
  byte k = 0, v = 0, n = 0, w = 0, kept = 0, present = 0, needs = 0, state = 0, best = 0;
  byte left = 0, upto = 0, data0 = 0, data1 = 0;
  d_step {
    cut = true;
    data0 = data_d[0]; data1 = data_d[1];
    decide();
    state = kept;
    for (k : 0 .. ALL - 1) {
      if :: stamp[k] != 0 && place[k] != 0 && stamp[k] <= x_d -> state = state | BIT(k) :: else fi
    };
    assert((told & ~state) == 0);
    for (k : 0 .. ALL - 1) {
      if :: (state & BIT(k)) != 0 -> assert((depends[k] & ~state) == 0) :: else fi
    };
    /* A recovery that was cut short has stored what it keeps to word 0, to word 1, to both (2) or
     * to none (3), up to some record. */
    for (left : 0 .. 3) {
      for (upto : 1 .. ALL) {
        data_d[0] = data0; data_d[1] = data1;
        for (v : 1 .. upto) {
          for (k : 0 .. ALL - 1) {
            if
            :: stamp[k] == v && (kept & BIT(k)) != 0 && (left == 2 || target[k] == left) ->
               data_d[target[k]] = k + 1
            :: else
            fi
          }
        };
        replay();
        for (w : 0 .. 1) {
          best = 0;
          for (k : 0 .. ALL - 1) {
            if
            :: (state & BIT(k)) != 0 && target[k] == w &&
               (best == 0 || place[k] > place[best - 1]) -> best = k + 1
            :: else
            fi
          };
          assert(data_d[w] == best)
        }
      }
    };
    /* all that is left is forgotten: one state after every cut */
    for (k : 0 .. ALL - 1) {
      stamp[k] = 0; names[k] = 0; record[k] = 0; target[k] = 0; place[k] = 0; depends[k] = 0
    };
    for (k : 0 .. THREADS - 1) { pending[k] = 0; committed[k] = 0; acknowledged[k] = 0 };
    for (w : 0 .. 1) { word[w] = 0; owned[w] = false; mark[w] = false; data_d[w] = 0 };
    clock = 0; places = 0; told = 0; x_d = 0;
    k = 0; v = 0; n = 0; w = 0; kept = 0; present = 0; needs = 0; state = 0; best = 0;
    left = 0; upto = 0; data0 = 0; data1 = 0
  }
}

/* Either two threads and a checkpoint, or three threads. */
init {
  atomic {
    if
    :: run thread0(true); run thread1(); run checkpoint()
    :: run thread0(false); run thread1(); run thread2()
    fi;
    run power()
  }
}
