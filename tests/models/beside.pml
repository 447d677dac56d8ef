/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A checkpoint's thread that copies lines beside a biased thread, which keeps its bias and stores
 * without ownership records (perdure/tm/orec_tm.hpp, perdure/engine/shadow/checkpoint.hpp). The
 * biased thread's stores wait in a store buffer, which drains in order, at any time, and at another
 * thread's membarrier(2). Two lines of one word each share a word of marks. Each of the biased
 * thread's transactions stores to one line or to both, then commits or rolls back. It marks a line
 * before it stores to it, or at the commit, before the record is handed over; a rollback leaves
 * early marks set and sets no late ones. It stores a mark always, or only where the mark is not
 * set. A third thread revokes the bias and runs a transaction under ownership records.
 *
 * A transaction stores its own number, so a word names the transaction that stored it. Before the
 * model begins, transaction 1 has stored to both lines and is durable.
 *
 *   BESIDE-1  The marks of a batch are taken before the biased thread is seen between transactions:
 *             every store that found its mark set before is complete when the copy begins.
 *   BESIDE-2  The copy counts only if the biased thread was seen between transactions after it: so
 *             every transaction whose words it may hold has ended.
 *   BESIDE-3  And only if none was rolled back meanwhile; otherwise the lines are copied again. The
 *             last copy is made when the bias has been revoked (here: while the biased thread is
 *             kept out). The marks are not set again: the biased thread sets marks by a load and a
 *             store, and would lose one in between.
 *
 * No heavy fence is needed between the copy and the wait after it: a copied word is seen after the
 * store that says that its transaction is active.
 *
 * Holds: the data region never has a word of a transaction that was rolled back or is not durable
 * (CKPT-1). After a batch it equals the shadow, except in lines that have a mark or that a
 * transaction has stored to and not ended. After a checkpoint it has every transaction up to the
 * checkpoint id (CKPT-2). When nothing moves any more, all threads have ended. Built with one of
 * these it must fail: NO_FENCE_BEFORE, NO_WAIT_BEFORE, TAKEN_AFTER_WAIT, NO_WAIT_AFTER,
 * CLOCK_BEFORE_WAIT, NOT_WAITING_DURABLE, NO_LOOK_AT_ROLLS, ROLLS_BEFORE_WAIT,
 * COUNTED_BEFORE_RESTORED, CHANGE_NOT_HELD, MARKED_AFTER_RECORD, MARKS_SET_AGAIN.
 */
#define DEPTH 4       /* stores that the buffer holds */
#define LAST 3        /* the biased thread's transactions are 2 and 3 */
#define CHECKPOINTS 2 /* of one batch each */
#ifdef MARKS_SET_AGAIN
#define COPIES 1 /* beside the biased thread; then it is kept out */
#else
#define COPIES 2
#endif
#define third (LAST + 1)

#define biased 0
#define changing 1
#define none 2

#define BIT(i) (1 << (i))

/* where a buffered store goes; 0 and 1 are the words */
#define at_marks 2
#define at_active 3
#define at_rolls 4
#define at_clock 5
#define at_records 6
chan buffer = [DEPTH] of { byte, byte };
byte marks_waiting = 0, marks_last = 0; /* marks in the buffer, and the last value */
hidden byte at, value;

byte word[2] = 1, data[2] = 0;          /* the shadow and the data region */
byte marks = 3;                         /* a bit for each line */
byte inside = 0, rolls = 0;             /* the biased thread's slot; `inside` is odd in it */
byte clock = 1, records = 1, durable = 1;
byte bias = biased;
bool locked = false;                    /* OrecShared::change */
byte owned = 0;                         /* ownership records that the third thread has */

/* for the assertions */
byte id_of[third + 1], lines_of[third + 1];
byte storing = 0;                       /* lines that the biased thread's transaction stored to */
byte ended = 0;

inline drain_one() {
  d_step {
    buffer?at,value;
    if
    :: at == at_marks -> marks = value; marks_waiting--;
      if :: marks_waiting == 0 -> marks_last = 0 :: else fi
    :: at == at_active -> inside = value; if :: value % 2 == 0 -> storing = 0 :: else fi
    :: at == at_rolls -> rolls = value
    :: at == at_clock -> clock = value
    :: at == at_records -> records = value
    :: else -> word[at] = value; storing = storing | BIT(at)
    fi
  }
}
inline heavy_fence() {
  atomic { do :: nempty(buffer) -> drain_one() :: empty(buffer) -> break od }
}

active proctype store_buffer() {
end:
  do :: atomic { nempty(buffer) -> drain_one() } od
}

active proctype log_writer() {
end:
  do :: atomic { durable < records -> durable++ } od
}

/* Marks are set by a load and a store; the checkpoint may take them in between. */
inline load_marks() {
  marked = (marks_waiting > 0 -> marks_last : marks)
}
inline store_mark() {
  if
  :: always || (marked & BIT(line)) == 0 ->
    marked = marked | BIT(line);
    buffer!at_marks,marked;
    marks_waiting++;
    marks_last = marked
  :: else
  fi;
  marked = 0
}
inline store_word() {
  old[line] = mine[line];
  mine[line] = n;
  buffer!line,n
}
inline next_line() {
  line++;
  if :: line < 2 && (lines & BIT(line)) == 0 -> line++ :: else fi
}

/* What it stores waits in the buffer, so a step has one load, and the stores before and after. */
active proctype is_biased() {
  byte n = 2, lines, line, marked, active_now = 0, rolls_now = 0, clock_now = 1;
  byte mine[2] = 1, old[2] = 0;
  bool late, always;
  atomic { if :: late = false :: late = true fi; if :: always = false :: always = true fi };
  do
  :: n <= LAST ->
    atomic {
      active_now++;
      buffer!at_active,active_now; /* the light fence is one for the compiler */
      if
      :: bias == biased ->
        if :: lines = 1; line = 0 :: lines = 2; line = 1 :: lines = 3; line = 0 fi
      :: bias == changing -> active_now++; buffer!at_active,active_now; !locked
      :: bias == none -> active_now++; buffer!at_active,active_now; break
      fi
    };
    if
    :: lines != 0 ->
      do
      :: atomic { line < 2 && !late -> load_marks() };
        atomic { store_mark(); store_word(); next_line() }
      :: atomic { line < 2 && late -> store_word(); next_line() }
      :: line == 2 -> break
      od;
      if
      :: /* commits */
        atomic {
          clock_now++;
          id_of[n] = clock_now;
          lines_of[n] = lines;
          buffer!at_clock,clock_now;
#ifdef MARKED_AFTER_RECORD
          buffer!at_records,clock_now;
#endif
          line = 1 - (lines & 1)
        };
        do
        :: atomic { late && line < 2 -> load_marks() }; atomic { store_mark(); next_line() }
        :: !late || line == 2 -> break
        od;
#ifndef MARKED_AFTER_RECORD
        buffer!at_records,clock_now
#endif
      :: /* rolls back; late marks are not set at all then */
        atomic {
          rolls_now++;
#ifdef COUNTED_BEFORE_RESTORED
          buffer!at_rolls,rolls_now;
#endif
          if :: lines & 1 -> buffer!0,old[0]; mine[0] = old[0] :: else fi;
          if :: lines & 2 -> buffer!1,old[1]; mine[1] = old[1] :: else fi;
#ifndef COUNTED_BEFORE_RESTORED
          buffer!at_rolls,rolls_now
#endif
        }
      fi;
      atomic {
        old[0] = 0; old[1] = 0; lines = 0; line = 0; n++; active_now++;
        buffer!at_active,active_now
      }
    :: else
    fi
  :: n > LAST -> break
  od;
  ended++
}

active proctype revokes() {
  byte old_word, line;
  atomic { !locked; locked = true; bias = changing };
  heavy_fence();
  inside % 2 == 0;
  atomic { bias = none; locked = false };
  /* a transaction under ownership records; all it does to them and to marks is locked */
  atomic { if :: line = 0 :: line = 1 fi; owned = BIT(line) };
  atomic { marks = marks | BIT(line); old_word = word[line] }; /* or the mark was set already */
  word[line] = third;
  if
  :: atomic { clock++; id_of[third] = clock; lines_of[third] = BIT(line) }; records = clock
  :: word[line] = old_word
  fi;
  atomic { owned = 0; ended++ }
}

inline see_between() {
  atomic {
    seen = inside;
    if :: seen % 2 == 1 -> inside != seen :: else fi; /* that transaction has ended */
    seen = 0
  }
}
inline take_marks() {
  taken = marks; marks = 0 /* one instruction */
}
inline copy_lines() {
  if :: taken & 1 -> batch[0] = word[0] :: else fi;
  if :: taken & 2 -> batch[1] = word[1] :: else fi
}
inline copy_beside() {
#ifndef TAKEN_AFTER_WAIT
  atomic { take_marks() };
#endif
  do
  :: copies < COPIES ->
#ifndef NO_FENCE_BEFORE
    heavy_fence();
#endif
#ifndef NO_WAIT_BEFORE
    see_between();
#endif
#ifdef TAKEN_AFTER_WAIT
    atomic { if :: copies == 0 -> take_marks() :: else fi };
#endif
    rolls_before = rolls;
    copy_lines();
#ifdef ROLLS_BEFORE_WAIT
    rolls_after = rolls;
#endif
#ifdef CLOCK_BEFORE_WAIT
    needs = clock;
#endif
#ifndef NO_WAIT_AFTER
    see_between();
#endif
    atomic {
#ifndef ROLLS_BEFORE_WAIT
      rolls_after = rolls;
#endif
#ifdef NO_LOOK_AT_ROLLS
      rolls_after = rolls_before;
#endif
      copied = (rolls_after == rolls_before);
      rolls_before = 0; rolls_after = 0;
      if :: copied -> break :: else -> copies++ fi
    }
  :: copies == COPIES ->
#ifdef MARKS_SET_AGAIN
    atomic { marks = marks | taken; taken = 0 };
#else
    bias = changing; /* keeps it out */
    heavy_fence();
    inside % 2 == 0;
    copy_lines();
    atomic { bias = biased; copied = true };
#endif
    break
  od;
#ifndef CLOCK_BEFORE_WAIT
  needs = clock;
#endif
}
inline copy_under_records() {
  atomic { take_marks() };
  if :: taken & 1 -> atomic { (owned & 1) == 0; batch[0] = word[0] } :: else fi;
  if :: taken & 2 -> atomic { (owned & 2) == 0; batch[1] = word[1] } :: else fi;
  copied = true;
  needs = clock
}

#define DURABLE(v) (id_of[v] != 0 && id_of[v] <= durable)
#define AS_SHADOW(i) (((marks | storing | owned) & BIT(i)) != 0 || data[i] == word[i])

active proctype checkpoints() {
  byte n = 0, seen = 0, taken = 0, copies = 0, rolls_before = 0, rolls_after = 0, needs = 0, v;
  byte batch[2] = 0, up_to_id[2] = 0;
  bool copied = false;
  d_step { id_of[1] = 1; lines_of[1] = 3 };
  do
  :: n < CHECKPOINTS ->
    d_step { /* the checkpoint id is what is durable now */
      v = 1;
      do
      :: v <= third ->
        if :: DURABLE(v) && (lines_of[v] & 1) -> up_to_id[0] = v :: else fi;
        if :: DURABLE(v) && (lines_of[v] & 2) -> up_to_id[1] = v :: else fi;
        v++
      :: v > third -> v = 0; break
      od
    };
#ifndef CHANGE_NOT_HELD
    atomic { !locked; locked = true };
#endif
    if
    :: bias == biased -> copy_beside()
    :: else -> copy_under_records()
    fi;
#ifndef CHANGE_NOT_HELD
    locked = false;
#endif
#ifndef NOT_WAITING_DURABLE
    durable >= needs;
#endif
    d_step {
      if :: taken & 1 -> assert(DURABLE(batch[0])); data[0] = batch[0] :: else fi;
      if :: taken & 2 -> assert(DURABLE(batch[1])); data[1] = batch[1] :: else fi;
      assert(AS_SHADOW(0) && AS_SHADOW(1));
      /* a checkpoint that has set the marks again is not at its end */
      assert(!copied || (data[0] >= up_to_id[0] && data[1] >= up_to_id[1]));
      batch[0] = 0; batch[1] = 0; taken = 0; up_to_id[0] = 0; up_to_id[1] = 0;
      needs = 0; copies = 0; copied = false; n++
    }
  :: n == CHECKPOINTS -> break
  od;
  ended++
}

init {
  timeout;
  assert(ended == 3);
  assert(AS_SHADOW(0) && AS_SHADOW(1))
}
