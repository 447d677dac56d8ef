/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Giving back a page of the shadow beside stores, heap ops and checkpoints:
 * perdure/engine/shadow/resident.hpp. The page has two lines with an ownership record each, and, in
 * some runs, a word of a bitmap, which has none. It shows the data region until the first store
 * copies it. One thread stores under ownership records, one changes the bitmap, one takes marks,
 * writes what it took, and gives the page back, in any order.
 *
 * Holds: what the page shows is what was committed last, except in a line that is being stored to
 * (RESIDENT-1, RESIDENT-2). Built with one of these it must fail: NO_HOLD, HOLD_ONE, NO_MARKS,
 * NO_COMPARISON, BITMAP_BESIDE_UPDATES, MARK_AFTER_STORE.
 */
#define free 0
#define stored_to 1
#define held 2

bool copied = true; /* the page has memory of its own */
bit own[3], data[3], batch[3], committed[3];
bool marked[3], taken[3];
byte record[2]; /* ownership records of lines 0 and 1 */
bool has_bitmap = false, inside = false, closed = false;
byte ended = 0;

#define SHOWN(i) (copied -> own[i] : data[i])

/* The first store copies the page; the kernel does that at once. */
inline put(i, v) {
  atomic {
    if
    :: !copied -> own[0] = data[0]; own[1] = data[1]; own[2] = data[2]; copied = true
    :: else -> skip
    fi;
    own[i] = v
  }
}

active proctype stores() {
  byte n = 0, i;
  bit v;
  do
  :: n < 3 ->
    if :: i = 0 :: i = 1 fi;
    if :: v = 0 :: v = 1 fi;
    atomic { record[i] == free && !closed; record[i] = stored_to };
#ifdef MARK_AFTER_STORE
    put(i, v);
    atomic { committed[i] = v; record[i] = free };
    marked[i] = true;
#else
    marked[i] = true; /* SHADOW-1 */
    put(i, v);
    atomic { committed[i] = v; record[i] = free };
#endif
    n++
  :: n == 3 -> break
  od;
  ended++
}

active proctype heap_ops() {
  byte n = 0;
  bit v;
  do
  :: has_bitmap && n < 2 ->
    atomic { !closed; inside = true };
    v = 1 - committed[2];
    atomic { put(2, v); committed[2] = v };
    marked[2] = true; /* the mark follows the change */
    inside = false;
    n++
  :: !has_bitmap || n == 2 -> break
  od;
  ended++
}

/* Under ownership records, or, with `alone`, while no update runs. */
inline hold() {
  held_all = true;
#ifndef NO_HOLD
  if
  :: alone -> closed = true; (!inside && record[0] == free && record[1] == free)
  :: else ->
    atomic { if :: record[0] == free -> record[0] = held :: else -> held_all = false fi };
#ifndef HOLD_ONE
    if
    :: held_all ->
      atomic {
        if
        :: record[1] == free -> record[1] = held
        :: else -> record[0] = free; held_all = false
        fi
      }
    :: else -> skip
    fi
#endif
  fi
#endif
}
inline let_go() {
  atomic {
    if :: record[0] == held -> record[0] = free :: else -> skip fi;
    if :: record[1] == held -> record[1] = free :: else -> skip fi;
    closed = false
  }
}

active proctype gives_back() {
  byte n = 0, i;
  bool alone, held_all, may;
  if :: has_bitmap = true :: skip fi;
  do
  :: n < 4 ->
    if
    :: /* a checkpoint takes the marks, then copies the lines as their records allow */
      (!taken[0] && !taken[1] && !taken[2]) ->
      atomic {
        taken[0] = marked[0]; taken[1] = marked[1]; taken[2] = marked[2];
        marked[0] = false; marked[1] = false; marked[2] = false
      };
      for (i : 0 .. 2) {
        if
        :: taken[i] && i < 2 -> atomic { record[i] != stored_to; batch[i] = SHOWN(i) }
        :: taken[i] && i == 2 -> batch[i] = SHOWN(i)
        :: else -> skip
        fi
      }
    :: /* it writes them, some time later */
      for (i : 0 .. 2) {
        if :: taken[i] -> data[i] = batch[i]; taken[i] = false :: else -> skip fi
      }
    :: /* the page is given back */
      (!marked[0] && !marked[1] && !marked[2]) ->
#ifdef BITMAP_BESIDE_UPDATES
      if :: alone = true :: alone = false fi;
#else
      if :: alone = true :: !has_bitmap -> alone = false fi; /* RESIDENT-2 */
#endif
      hold();
      if
      :: held_all ->
        may = true;
#ifndef NO_MARKS
        may = may && !marked[0] && !marked[1] && !marked[2];
#endif
#ifndef NO_COMPARISON
        may = may && SHOWN(0) == data[0] && SHOWN(1) == data[1] && SHOWN(2) == data[2];
#endif
        if :: may -> copied = false :: else -> skip fi
      :: else -> skip
      fi;
      let_go()
    :: true -> skip
    fi;
    n++
  :: n == 4 -> break
  od;
  ended++
}

active proctype readers() {
  do
  :: atomic {
      assert(record[0] == stored_to || SHOWN(0) == committed[0]);
      assert(record[1] == stored_to || SHOWN(1) == committed[1]);
      assert(SHOWN(2) == committed[2])
    }
  :: ended == 3 -> break
  od
}

init {
  timeout;
  assert(ended == 3)
}
