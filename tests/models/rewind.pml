/* SPDX-License-Identifier: BSD-3-Clause
 *
 * REWIND's transaction managers over one log (papers/rewind/manager.hpp, recovery.cpp), force and
 * no-force. Transaction t stores to word t: first 1, then, in transaction 0, 2. Their records lie
 * between each other's. Each ends by a commit or by a rollback; without force a checkpoint may be
 * taken at any time. A cache may write back any word and any pointer of the log at any time. The
 * power is cut at any instant, and once more in recovery.
 *
 * A record is durable before a pointer to it (PTRLOG-1), so a cell of the log is a pointer that is
 * there or not, or a gap where one was removed.
 *
 *   REWIND-1  An UPDATE or CLR is in the log before the word may change.
 *   REWIND-2  What a rollback stored, and with force what a commit stored, is durable before END.
 *   REWIND-3  END is removed last.
 *   REWIND-4  The words are durable before the header says so (covered), and the header before a
 *             record is removed.
 *
 * Holds: after recovery a word has what its transaction stored last if that was acknowledged, and 0
 * if it was rolled back or had not begun to commit. Built with one of these it must fail:
 * STORE_BEFORE_RECORD, END_BEFORE_STORES, ROLLBACK_NOT_DURABLE, END_REMOVED_FIRST,
 * CHECKPOINT_NOT_DURABLE, HEADER_AFTER_REMOVAL, CLRS_NOT_REDONE, NEWEST_UNDONE_LAST,
 * COVERED_REDONE.
 */
#define CELLS 13
#define TXS 2
#define most(t) (2 - (t)) /* stores of a transaction */

/* kinds of records */
#define update 1
#define clr 2
#define marks 3 /* ROLLBACK */
#define ends 4  /* END of a commit */
#define undone 5 /* END of a rollback */

/* states of a transaction */
#define runs 0
#define commits 1
#define told 2 /* its commit was acknowledged */
#define back 3

/* what is visible, and what is durable */
byte word[TXS], word_d[TXS];
byte cell[CELLS], cell_d[CELLS]; /* 0: empty, 1: a pointer, 2: a gap */
byte covered, covered_d;         /* by the header: a bit for each transaction */
byte kind[CELLS], who[CELLS], old[CELLS], new[CELLS], about[CELLS];
byte tail;

byte state[TXS], stores[TXS];
bool force;
byte cuts; /* of the power */

#define BIT(t) (1 << (t))
#define IS_UPDATE(c, t) (cell[c] == 1 && who[c] == t && kind[c] == update)
#ifdef COVERED_REDONE
#define IS_COVERED(t) false
#else
#define IS_COVERED(t) (covered & BIT(t))
#endif

inline append(k, t, o, n, undoes) {
  d_step {
    assert(tail < CELLS);
    kind[tail] = k;
    who[tail] = t;
    old[tail] = o;
    new[tail] = n;
    about[tail] = undoes;
    cell[tail] = 1;
    tail++
  }
  d_step { cell_d[tail - 1] = cell[tail - 1] }
}
inline fence_word(t) { d_step { word_d[t] = word[t] } }
inline fence_cells() {
  d_step {
    at = 0;
    do
    :: at < CELLS -> cell_d[at] = cell[at]; at++
    :: else -> break
    od;
    at = 0
  }
}

/* Removes the records of the transactions in `which`: in one group, then END. */
inline remove_all(which) {
  d_step {
    at = 0;
    do
    :: at < CELLS ->
      if
      :: cell[at] == 1 && (which & BIT(who[at])) && kind[at] < ends -> cell[at] = 2
#ifdef END_REMOVED_FIRST
      :: cell[at] == 1 && (which & BIT(who[at])) && kind[at] >= ends -> cell[at] = 2
#endif
      :: else
      fi;
      at++
    :: else -> break
    od;
    at = 0
  }
  fence_cells();
  d_step {
    at = 0;
    do
    :: at < CELLS ->
      if
      :: cell[at] == 1 && (which & BIT(who[at])) -> cell[at] = 2
      :: else
      fi;
      at++
    :: else -> break
    od;
    at = 0
  }
  fence_cells()
}

inline do_update(t) {
#ifdef STORE_BEFORE_RECORD
  word[t] = stores[t] + 1;
  append(update, t, stores[t], stores[t] + 1, 0);
  stores[t]++
#else
  append(update, t, stores[t], stores[t] + 1, 0);
  word[t] = stores[t] + 1;
  stores[t]++
#endif
}
inline do_commit(t) {
  atomic {
    state[t] = commits;
#ifndef END_BEFORE_STORES
    if :: force -> word_d[t] = word[t] :: else fi
#endif
  };
  append(ends, t, 0, 0, 0);
#ifdef END_BEFORE_STORES
  if :: force -> fence_word(t) :: else fi;
#endif
  state[t] = told;
  if :: force -> remove_all(BIT(t)) :: else fi
}
/* The UPDATEs of t from the newest on. */
inline do_rollback(t) {
  append(marks, t, 0, 0, 0);
  c = tail;
  do
  :: atomic {
      c > 0 ->
      c--;
      do
      :: c > 0 && !IS_UPDATE(c, t) -> c--
      :: else -> break
      od
    };
    if
    :: IS_UPDATE(c, t) ->
      append(clr, t, 0, old[c], c);
      word[t] = old[c]
    :: else
    fi
  :: c == 0 -> break
  od;
#ifndef ROLLBACK_NOT_DURABLE
  fence_word(t);
#endif
  append(undone, t, 0, 0, 0);
  c = 0;
  state[t] = back;
  if :: force -> remove_all(BIT(t)) :: else fi
}
inline do_checkpoint() {
  /* All that has ended by now. */
  which = (state[0] >= told -> 1 : 0) + (state[1] >= told -> 2 : 0);
#ifndef CHECKPOINT_NOT_DURABLE
  d_step { word_d[0] = word[0]; word_d[1] = word[1] }
#endif
#ifdef HEADER_AFTER_REMOVAL
  remove_all(which);
#endif
  covered = which;
  covered_d = covered;
#ifndef HEADER_AFTER_REMOVAL
  remove_all(which);
#endif
  which = 0
}

active proctype cache() {
end:
  do
  :: atomic { word_d[0] != word[0] -> word_d[0] = word[0] }
  :: atomic { word_d[1] != word[1] -> word_d[1] = word[1] }
  od
}

/* At a cut it ends, wherever it is. */
active proctype program() {
  byte at, c, which;
  bool checked = false;
  {
    if :: force = true :: force = false fi;
    do
    :: state[0] == runs && stores[0] < most(0) -> do_update(0)
    :: state[1] == runs && stores[1] < most(1) -> do_update(1)
    :: state[0] == runs && stores[0] > 0 -> do_commit(0)
    :: state[1] == runs && stores[1] > 0 -> do_commit(1)
    :: state[0] == runs && stores[0] > 0 -> do_rollback(0)
    :: state[1] == runs && stores[1] > 0 -> do_rollback(1)
    :: !force && !checked -> checked = true; do_checkpoint()
    :: state[0] >= told && state[1] >= told -> break
    od
  } unless { cuts > 0 };
  atomic { at = 0; c = 0; which = 0; checked = false }
}

#ifdef CLRS_NOT_REDONE
#define IS_REDONE_CLR(c) false
#else
#define IS_REDONE_CLR(c) (kind[c] == clr && finished[who[c]] == 0)
#endif
#define IS_REDONE(c) \
  (cell[c] == 1 && (IS_REDONE_CLR(c) || (kind[c] == update && finished[who[c]] == ends && \
                                         !force && !IS_COVERED(who[c]))))
#define IS_UNDONE(c) \
  (cell[c] == 1 && kind[c] == update && finished[who[c]] == 0 && c < from[who[c]])
#ifdef NEWEST_UNDONE_LAST
#define PLACE(c) (CELLS - (c))
#else
#define PLACE(c) ((c)-1)
#endif

inline recover() {
  /* analysis */
  d_step {
    from[0] = CELLS;
    from[1] = CELLS;
    do
    :: c < CELLS ->
      t = who[c];
      if
      :: cell[c] == 1 ->
        if
        :: kind[c] >= ends -> finished[t] = kind[c]
        :: kind[c] == marks -> aborts[t] = true
        :: kind[c] == clr && about[c] < from[t] -> from[t] = about[c]
        :: else
        fi
      :: else
      fi;
      c++
    :: else -> break
    od;
    c = 0
  }
  /* redo */
  do
  :: atomic {
      do
      :: c < CELLS && !IS_REDONE(c) -> c++
      :: else -> break
      od;
      if
      :: c < CELLS -> word[who[c]] = new[c]; c++
      :: else -> break
      fi
    }
  od;
  /* undo, the newest first */
  c = CELLS;
  do
  :: atomic {
      do
      :: c > 0 && !IS_UNDONE(PLACE(c)) -> c--
      :: else -> break
      od;
      if
      :: c > 0 -> at = PLACE(c); t = who[at]; c--
      :: else -> break
      fi
    };
    if
    :: !aborts[t] -> append(marks, t, 0, 0, 0); aborts[t] = true
    :: else
    fi;
    append(clr, t, 0, old[at], at);
    word[t] = old[at]
  od;
  at = 0;
  d_step { word_d[0] = word[0]; word_d[1] = word[1] }
  if :: aborts[0] && finished[0] == 0 -> append(undone, 0, 0, 0, 0) :: else fi;
  if :: aborts[1] && finished[1] == 0 -> append(undone, 1, 0, 0, 0) :: else fi;
  t = 0;
  /* The epoch rises: the log is another session's. */
  d_step {
    do
    :: t < TXS ->
      assert(word_d[t] == word[t]);
      assert(state[t] != told || word[t] == stores[t]);
      assert(state[t] != back || word[t] == 0);
      assert(state[t] != runs || word[t] == 0);
      assert(state[t] != commits || word[t] == 0 || word[t] == stores[t]);
      t++
    :: else -> break
    od;
    t = 0
  }
}

proctype recovery() {
  byte at, c, t;
  byte finished[TXS], from[TXS]; /* from: UPDATEs from this cell on have been undone */
  bool aborts[TXS];
  byte number = cuts;
  { recover() } unless { cuts > number };
  atomic {
    at = 0; c = 0; t = 0; number = 0;
    finished[0] = 0; finished[1] = 0;
    from[0] = 0; from[1] = 0;
    aborts[0] = false; aborts[1] = false
  }
}

/* Cuts the power. Of a pointer, a gap or the header that is not durable it leaves either; the cache
 * decides for words. */
active proctype power() {
  byte i;
  do
  :: cuts < 2 ->
    atomic {
      cuts++;
      word[0] = word_d[0];
      word[1] = word_d[1];
      if :: covered = covered_d :: covered_d = covered fi;
      tail = 0;
      i = 0;
      do
      :: i < CELLS ->
        if
        :: cell[i] != cell_d[i] -> cell[i] = cell_d[i]
        :: cell[i] != cell_d[i] -> cell_d[i] = cell[i]
        :: cell[i] == cell_d[i]
        fi;
        if
        :: cell[i] == 1 -> tail = i + 1
        :: else ->
          if :: cell[i] == 2 -> tail = i + 1 :: else fi;
          kind[i] = 0; who[i] = 0; old[i] = 0; new[i] = 0; about[i] = 0
        fi;
        i++
      :: else -> break
      od;
      i = 0;
      run recovery()
    }
  :: break
  od
}
