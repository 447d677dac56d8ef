/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SoftWrAP with global aliasing (papers/softwrap/softwrap.hpp, alias_tables.hpp, retirer.cpp,
 * recovery.cpp). Two threads run up to WRAPS wraps (transactions), which load two words at any
 * time, store to them up to OPS times, and close or abort. The caller isolates them, by a lock for
 * each word. All wraps together store up to STORES times, or once less where there is a third wrap.
 * The period ends up to ROUNDS times: the retirer makes the other alias table the active one,
 * stores the old one's values to the data region, and empties it. Each of its time limits may be
 * over at any time, so new wraps are delayed, old ones are evicted, or the others go on without
 * them. The power is cut at any instant, in an eviction too, and once more in recovery. It leaves
 * any part of what is not fenced.
 *
 * A wrap's record in the log is one step, and durable by the fence of its close. It lies in the
 * bucket of the period in which its wrap was opened, until the bucket's next base is durable. A
 * word's value rises by 1 at each store. What no other process can tell apart is one step: a whole
 * look-up, for example, because the word is locked and its table is checked for ALIAS-1.
 *
 *   SOFTWRAP-1  The data region has nothing of a wrap before its log is durable.
 *   SOFTWRAP-2  A bucket begins again only when the data region durably has all of its wraps, and
 *               the checkpoint id X says so.
 *   RETIRE-1    X is the low watermark at the switch: the data region has all wraps up to it.
 *   RETIRE-2    The data region gets values of closed wraps only.
 *   RETIRE-3    A bucket begins again two periods after its wraps' own.
 *   ALIAS-1     No wrap reads a table that is being emptied.
 *   ALIAS-2     What a wrap stores is in tables of its period or the next one.
 *
 * Holds: these, each as an assertion; a wrap loads the newest value, which is its own or that of a
 * closed wrap; after recovery each word has the value of the newest wrap whose record is durable,
 * as that of every acknowledged wrap is. Built with one of these it must fail:
 * ID_AFTER_SWITCH, TWO_BUCKETS, BASE_NOT_FENCED, OPEN_WRAPS_RETIRED, ID_BESIDE_DATA, ID_NOT_NOTED,
 * RETIRED_BEFORE_STORED, EMPTIED_BESIDE_READERS, SECOND_TABLE_NOT_READ, NO_SECOND_LOOK,
 * ACKNOWLEDGED_BEFORE_FENCE, ABORT_NOT_TAKEN_BACK, HELD_LOOKED_AT_FIRST, EVICTED_BESIDE_WRAPS,
 * LOGS_NOT_REPLAYED, EVICTION_ID_BESIDE_DATA, OLDEST_BUCKET_LEFT_OUT, OUT_OF_ORDER,
 * COVERED_REPLAYED.
 */

/* Two wraps show the faults that the search would reach last. */
#if defined(TWO_BUCKETS) || defined(ID_NOT_NOTED) || defined(OLDEST_BUCKET_LEFT_OUT) || \
    defined(COVERED_REPLAYED)
#define WRAPS 2
#else
#define WRAPS 3
#endif
#define OPS 2
#define STORES 4
#define ROUNDS 3
#ifdef TWO_BUCKETS
#define BUCKETS 2
#else
#define BUCKETS 3
#endif

/* Where a thread is. */
#define idle 0
#define shows 1   /* is about to show the moment at which it opens a wrap */
#define looks 2   /* at the moment once more, and whether new wraps are delayed */
#define delayed 3
#define runs 4
#define loads 5   /* has read the moment, and looks the word up */
#define stores 6  /* has chosen the table */
#define closes 7  /* its id is drawn, and its record is not fenced */
#define ends 8    /* its record is durable, or it has aborted; its words are unlocked */

/* Where the retirer is. */
#define waits 0
#define begins 1     /* the base of the next bucket is not fenced */
#define switches 2   /* X is drawn */
#define draws_late 3 /* X, if ID_AFTER_SWITCH */
#define watches 4    /* until the wraps of the old period have ended, or the time is over */
#define holds 5      /* the same, and delays new wraps */
#define evicts 6     /* until no wrap is open, or the time is over */
#define stuck 7      /* until the wraps of the old period have ended */
#define retires 8
#define fences 9     /* the data region, which has the table's values */
#define notes 10     /* X, which is visible */
#define looked_at 11 /* until no wrap reads the table */
#define empties 12
#define replays 13

/* states of a table, as in alias_tables.hpp */
#define E 0
#define A 1
#define F 2
#define C 3
#define R 4

/* DRAM */
byte alias[4];       /* of each table, for each word: its value, or 0 */
byte state[2];       /* of each table */
byte moment = 1;     /* twice the period, and 1 if the other table is in R or E */
byte colour[2];      /* of each thread: 0, or the moment at which its wrap was opened, + 1 */
byte expired;        /* wraps of earlier periods are aborted at their next call */
bool held;           /* new wraps are delayed */
byte lock[2];        /* of each word: 0, or its owner, + 1 */
byte step[2], seen[2], word[2], ops[2]; /* of each thread; seen: the moment that it has read */
byte mine[4];        /* of each thread, for each word: what its wrap has stored last */
byte undo_at[4], undo_old[4]; /* of each thread, for each store: the alias, + 1, and its value */
byte id[2];          /* of each thread: of the wrap that closes, or 0 */
byte retirer_at, x_new, next; /* x_new: X, as it was drawn; next: an id to be replayed */
byte begun, stored;  /* the number of wraps, and of their stores */

/* the pool: what is visible, and what is durable */
byte data[2], data_d[2];
byte x, x_d;
byte beginning;      /* the period whose bucket begins, while its base is not fenced; or 0 */
byte clock;          /* the last id */
byte rec[2 * WRAPS]; /* of each id, for each word: what the wrap has stored last */
byte rec_period[WRAPS], rec_log[WRAPS]; /* period + 1; 0: there is no such record */
bool rec_closed[WRAPS];

byte newest[2];      /* what recovery has to restore */
byte cuts;           /* of the power */
bool made;

#define PERIOD(m) ((m) / 2)
#define ACTIVE(m) ((m) / 2 % 2)
#define OTHER(m) (1 - ACTIVE(m))
#define OLD (PERIOD(moment) - 1)
#define OPENED(t) PERIOD(colour[t] - 1)
#define EXPIRED(t) (expired > OPENED(t))
#define MINE(t, w) mine[2 * (t) + (w)]
#define ALIAS(table, w) alias[2 * (table) + (w)]
#define REC(i, w) rec[2 * (i) + (w)]

/* The threads are alike, so thread 0 opens the first wrap. */
#ifdef HELD_LOOKED_AT_FIRST
#define MAY_OPEN(t) (made && begun < WRAPS && ((t) == 0 || begun > 0) && !held)
#else
#define MAY_OPEN(t) (made && begun < WRAPS && ((t) == 0 || begun > 0))
#endif

#define IS_OPEN_IN(t, p) (colour[t] != 0 && OPENED(t) == (p))
#ifdef OPEN_WRAPS_RETIRED
#define ENDED true
#else
#define ENDED (!IS_OPEN_IN(0, OLD) && !IS_OPEN_IN(1, OLD))
#endif
#ifdef EVICTED_BESIDE_WRAPS
#define NONE_OPEN ENDED
#else
#define NONE_OPEN (colour[0] == 0 && colour[1] == 0)
#endif
#ifdef EMPTIED_BESIDE_READERS
#define LOOKED_AT false
#else
#define LOOKED_AT (colour[0] == (moment & 254) + 1 || colour[1] == (moment & 254) + 1)
#endif
#ifdef SECOND_TABLE_NOT_READ
#define READS_OTHER(m) false
#else
#define READS_OTHER(m) ((m) % 2 == 0)
#endif
/* Whether a thread may read this table within the present call. */
#define READS(t, table) \
  ((step[t] == loads && (ACTIVE(seen[t]) == (table) || READS_OTHER(seen[t]))) || \
   (step[t] == stores && ACTIVE(seen[t]) == (table)))

#define FIND(m, w) \
  (ALIAS(ACTIVE(m), w) != 0 -> ALIAS(ACTIVE(m), w) : \
   (READS_OTHER(m) && ALIAS(OTHER(m), w) != 0 -> ALIAS(OTHER(m), w) : data[w]))
#define EXPECTED(t, w) (MINE(t, w) != 0 -> MINE(t, w) : newest[w])

#define PENDING(t) (id[t] != 0 -> id[t] - 1 : clock)
#define WATERMARK (PENDING(0) < PENDING(1) -> PENDING(0) : PENDING(1))

inline forget_record(i) {
  REC(i, 0) = 0;
  REC(i, 1) = 0;
  rec_period[i] = 0;
  rec_log[i] = 0;
  rec_closed[i] = false
}
/* What recovery must find from now on. */
inline is_durable(i) {
  rec_closed[i] = true;
  if :: REC(i, 0) != 0 -> newest[0] = REC(i, 0) :: else fi;
  if :: REC(i, 1) != 0 -> newest[1] = REC(i, 1) :: else fi
}
inline unlock(t) {
  if :: lock[0] == t + 1 -> lock[0] = 0 :: else fi;
  if :: lock[1] == t + 1 -> lock[1] = 0 :: else fi
}
inline forget_wrap(t) {
  MINE(t, 0) = 0;
  MINE(t, 1) = 0;
  undo_at[2 * t] = 0;
  undo_at[2 * t + 1] = 0;
  undo_old[2 * t] = 0;
  undo_old[2 * t + 1] = 0;
  ops[t] = 0;
  id[t] = 0
}
inline load(t, w) {
  assert(FIND(seen[t], w) == EXPECTED(t, w));
  if :: MINE(t, w) == 0 -> lock[w] = 0 :: else fi;
  word[t] = 0;
  seen[t] = 0;
  step[t] = runs
}
inline begin_call(t, w) {
  lock[w] = t + 1;
  word[t] = w;
  seen[t] = moment
}
inline store(t, w) {
  assert(PERIOD(seen[t]) == OPENED(t) || PERIOD(seen[t]) == OPENED(t) + 1); /* ALIAS-2 */
  assert(state[ACTIVE(seen[t])] == A || state[ACTIVE(seen[t])] == F);
  assert(ALIAS(ACTIVE(seen[t]), w) == 0 || ALIAS(ACTIVE(seen[t]), w) == EXPECTED(t, w));
  assert(FIND(moment, w) == EXPECTED(t, w));
  undo_at[2 * t + ops[t]] = 2 * ACTIVE(seen[t]) + w + 1;
  undo_old[2 * t + ops[t]] = ALIAS(ACTIVE(seen[t]), w);
  ALIAS(ACTIVE(seen[t]), w) = EXPECTED(t, w) + 1;
  MINE(t, w) = EXPECTED(t, w) + 1;
  ops[t]++;
  word[t] = 0;
  seen[t] = 0;
  step[t] = runs
}
/* The newest first. */
inline take_back(t) {
  if
  :: undo_at[2 * t + 1] != 0 -> alias[undo_at[2 * t + 1] - 1] = undo_old[2 * t + 1]
  :: else
  fi;
  if
  :: undo_at[2 * t] != 0 -> alias[undo_at[2 * t] - 1] = undo_old[2 * t]
  :: else
  fi
}

#define MAY_CALL(w) (step[_pid] == runs && !EXPIRED(_pid) && lock[w] != 2 - _pid)
/* The words are alike, too: word 0 is the first that is stored to. */
#define MAY_STORE(w) \
  (MAY_CALL(w) && ops[_pid] < OPS && stored + (begun > 2) < STORES && ((w) == 0 || stored > 0))

/* All of its steps begin at one place, and what it knows is global: a cut leaves no state of it. */
active [2] proctype thread() provided (cuts == 0) {
  do
  /* wrapOpen */
  :: d_step {
      step[_pid] == idle && MAY_OPEN(_pid) ->
      begun++;
      seen[_pid] = moment;
      step[_pid] = shows
    }
  :: d_step { step[_pid] == shows -> colour[_pid] = seen[_pid] + 1; step[_pid] = looks }
  :: d_step {
      step[_pid] == looks ->
      if
#ifndef NO_SECOND_LOOK
      :: moment != seen[_pid] -> seen[_pid] = moment; step[_pid] = shows
#endif
#ifndef HELD_LOOKED_AT_FIRST
      :: moment == seen[_pid] && held ->
        colour[_pid] = 0;
        seen[_pid] = 0;
        step[_pid] = delayed
#endif
      :: else -> seen[_pid] = 0; step[_pid] = runs
      fi
    }
  :: d_step { step[_pid] == delayed && !held -> seen[_pid] = moment; step[_pid] = shows }

  /* wrapLoad */
  :: d_step { MAY_CALL(0) -> begin_call(_pid, 0); step[_pid] = loads }
  :: d_step { MAY_CALL(1) -> begin_call(_pid, 1); step[_pid] = loads }
  :: d_step { step[_pid] == loads -> load(_pid, word[_pid]) }

  /* wrapStore */
  :: d_step { MAY_STORE(0) -> begin_call(_pid, 0); stored++; step[_pid] = stores }
  :: d_step { MAY_STORE(1) -> begin_call(_pid, 1); stored++; step[_pid] = stores }
  :: d_step { step[_pid] == stores -> store(_pid, word[_pid]) }

  /* wrapClose */
  :: d_step {
      step[_pid] == runs && !EXPIRED(_pid) ->
      if
      :: MINE(_pid, 0) == 0 && MINE(_pid, 1) == 0 ->
        unlock(_pid);
        forget_wrap(_pid);
        step[_pid] = ends
      :: else ->
        REC(clock, 0) = MINE(_pid, 0);
        REC(clock, 1) = MINE(_pid, 1);
        rec_period[clock] = OPENED(_pid) + 1;
        rec_log[clock] = _pid;
        clock++;
        id[_pid] = clock;
#ifdef ACKNOWLEDGED_BEFORE_FENCE
        is_durable(clock - 1);
        rec_closed[clock - 1] = false;
#endif
        step[_pid] = closes
      fi
    }
  :: d_step {
      step[_pid] == closes ->
      is_durable(id[_pid] - 1);
      unlock(_pid);
      forget_wrap(_pid);
      step[_pid] = ends
    }
  :: d_step { step[_pid] == ends -> colour[_pid] = 0; step[_pid] = idle }

  /* abort */
  :: d_step {
      step[_pid] == runs && (EXPIRED(_pid) || ops[_pid] > 0) ->
#ifndef ABORT_NOT_TAKEN_BACK
      take_back(_pid);
#endif
      unlock(_pid);
      forget_wrap(_pid);
      step[_pid] = ends
    }
  od
}

inline begin_bucket() {
  beginning = PERIOD(moment) + 1;
  i = 0;
  do
  :: i < clock ->
    if
    :: rec_period[i] != 0 && (rec_period[i] - 1) % BUCKETS == beginning % BUCKETS ->
      /* SOFTWRAP-2, RETIRE-3 */
      assert(rec_closed[i] && i < x_d && data_d[0] >= REC(i, 0) && data_d[1] >= REC(i, 1))
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0
}
/* The next base, of one log: what was in the bucket is no longer there. */
inline base_is_durable(log) {
  i = 0;
  do
  :: i < clock ->
    if
    :: rec_period[i] != 0 && rec_period[i] - 1 != beginning && rec_log[i] == log &&
       (rec_period[i] - 1) % BUCKETS == beginning % BUCKETS ->
      forget_record(i)
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0
}
inline close_table() {
  state[OTHER(moment)] = C;
#ifdef RETIRED_BEFORE_STORED
  moment = moment | 1;
#endif
  retirer_at = retires
}
inline retire(w) {
  if
  :: ALIAS(OTHER(moment), w) != 0 ->
    assert(state[OTHER(moment)] == C);
    assert(ALIAS(OTHER(moment), w) <= newest[w]); /* SOFTWRAP-1, RETIRE-2 */
    data[w] = ALIAS(OTHER(moment), w)
  :: else
  fi
}
inline check_covered() {
  i = 0;
  do
  :: i < x_new ->
    /* RETIRE-1 */
    assert(data_d[0] >= REC(i, 0) && data_d[1] >= REC(i, 1));
    i++
  :: else -> break
  od;
  i = 0
}
/* Recovery passes over these from now on. Without them there are fewer states. */
inline forget_covered() {
  i = 0;
  do
  :: i < x -> forget_record(i); i++
  :: else -> break
  od;
  i = 0
}
inline clear(table) {
  assert(!READS(0, table) && !READS(1, table)); /* ALIAS-1 */
  ALIAS(table, 0) = 0;
  ALIAS(table, 1) = 0
}
#ifdef COVERED_REPLAYED
#define IS_REPLAYED(i) rec_closed[i]
#else
#define IS_REPLAYED(i) (rec_closed[i] && (i) >= x)
#endif
/* A cache may write it back before the next store. */
inline replay(i) {
  if
  :: REC(i, 0) != 0 -> data[0] = REC(i, 0); if :: data_d[0] = data[0] :: skip fi
  :: else
  fi;
  if
  :: REC(i, 1) != 0 -> data[1] = REC(i, 1); if :: data_d[1] = data[1] :: skip fi
  :: else
  fi
}

active proctype retirer() provided (cuts == 0) {
  byte i;
  d_step { state[0] = A; made = true }
  do
  /* a round */
  :: d_step {
      retirer_at == waits && PERIOD(moment) < ROUNDS ->
      assert(state[OTHER(moment)] == E && moment % 2 == 1);
      clear(OTHER(moment)); /* it may become larger */
      begin_bucket();
      retirer_at = begins
    }
  :: d_step {
      retirer_at == begins ->
#ifndef BASE_NOT_FENCED
      base_is_durable(0);
      base_is_durable(1);
      beginning = 0;
#endif
#ifndef ID_AFTER_SWITCH
      x_new = WATERMARK;
#endif
      retirer_at = switches
    }
  :: d_step {
      retirer_at == switches ->
      state[OTHER(moment)] = A;
      state[ACTIVE(moment)] = F;
      moment = (PERIOD(moment) + 1) * 2;
#ifdef ID_AFTER_SWITCH
      retirer_at = draws_late
    }
  :: d_step {
      retirer_at == draws_late -> x_new = WATERMARK;
#endif
      retirer_at = watches
    }
  :: d_step { retirer_at == watches && ENDED -> close_table() }
  :: d_step { retirer_at == watches && !ENDED -> held = true; retirer_at = holds }
  :: d_step { retirer_at == holds && ENDED -> held = false; close_table() }
  :: d_step { retirer_at == holds && !ENDED -> expired = OLD + 1; retirer_at = evicts }
  :: d_step { retirer_at == evicts && !NONE_OPEN -> held = false; retirer_at = stuck }
  :: d_step { retirer_at == stuck && ENDED -> close_table() }

  /* retirement, C to R */
  :: d_step {
      retirer_at == retires ->
#ifdef ID_BESIDE_DATA
      if :: x_new > x -> x = x_new :: else fi;
#endif
      retire(0);
      retire(1);
      retirer_at = fences
    }
  :: d_step {
      retirer_at == fences ->
      data_d[0] = data[0];
      data_d[1] = data[1];
#ifdef BASE_NOT_FENCED
      base_is_durable(0);
      base_is_durable(1);
      beginning = 0;
#endif
#ifndef ID_NOT_NOTED
      check_covered();
      if :: x_new > x -> x = x_new :: else fi;
#endif
      retirer_at = notes
    }
  :: d_step {
      retirer_at == notes ->
      x_d = x;
#ifndef COVERED_REPLAYED
      forget_covered();
#endif
      state[OTHER(moment)] = R;
      moment = moment | 1;
      retirer_at = looked_at
    }
  :: d_step { retirer_at == looked_at && !LOOKED_AT -> retirer_at = empties }
  :: d_step {
      retirer_at == empties ->
      clear(OTHER(moment));
      state[OTHER(moment)] = E;
      held = false; /* after an eviction */
      expired = 0; /* no such wrap is open */
      x_new = 0;
      retirer_at = waits
    }

  /* eviction */
  :: d_step {
      retirer_at == evicts && NONE_OPEN ->
      state[OTHER(moment)] = C;
      clear(0);
      clear(1);
      x_new = WATERMARK;
#ifdef EVICTION_ID_BESIDE_DATA
      if :: x_new > x -> x = x_new :: else fi;
#endif
      next = 0;
#ifdef LOGS_NOT_REPLAYED
      retirer_at = fences
#else
      retirer_at = replays
#endif
    }
  :: atomic {
      retirer_at == replays ->
      do
      :: next < x_new && !IS_REPLAYED(next) -> next++
      :: else -> break
      od;
      if
      :: next < x_new -> replay(next); next++
      :: else -> next = 0; retirer_at = fences
      fi
    }
  od
}

#ifdef OUT_OF_ORDER
#define PLACE(i) (clock - 1 - (i))
#else
#define PLACE(i) (i)
#endif

/* Of what is not durable it leaves either. */
inline cut_data() {
  if :: data[0] = data_d[0] :: data_d[0] = data[0] fi;
  if :: data[1] = data_d[1] :: data_d[1] = data[1] fi
}
/* The base of the bucket that begins, of one log. Without it new records are not found. */
inline cut_base(log) {
  if
  :: beginning != 0 -> base_is_durable(log)
  :: beginning != 0 -> forget_period(beginning, log)
  :: beginning == 0
  fi
}
inline forget_period(p, log) {
  i = 0;
  do
  :: i < clock ->
    if :: rec_period[i] == p + 1 && rec_log[i] == log -> forget_record(i) :: else fi;
    i++
  :: else -> break
  od;
  i = 0
}
inline cut_records() {
  i = 0;
  do
  :: i < clock ->
    if
    :: rec_period[i] != 0 && !rec_closed[i] -> is_durable(i)
    :: rec_period[i] != 0 && !rec_closed[i] -> forget_record(i)
    :: rec_period[i] == 0 || rec_closed[i]
    fi;
    i++
  :: else -> break
  od;
  cut_base(0);
  cut_base(1);
  beginning = 0;
#ifdef OLDEST_BUCKET_LEFT_OUT
  if
  :: PERIOD(moment) >= 2 ->
    forget_period(PERIOD(moment) - 2, 0);
    forget_period(PERIOD(moment) - 2, 1)
  :: else
  fi;
#endif
  i = 0;
  do
  :: i < clock -> rec_period[i] = 0; rec_log[i] = 0; i++
  :: else -> break
  od;
  i = 0
}
inline forget_dram() {
  d_step {
    i = 0;
    do
    :: i < 4 ->
      alias[i] = 0;
      mine[i] = 0;
      undo_at[i] = 0;
      undo_old[i] = 0;
      i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < 2 ->
      state[i] = 0;
      colour[i] = 0;
      lock[i] = 0;
      step[i] = 0;
      seen[i] = 0;
      word[i] = 0;
      ops[i] = 0;
      id[i] = 0;
      i++
    :: else -> break
    od;
    i = 0;
    moment = 0;
    expired = 0;
    held = false;
    retirer_at = 0;
    x_new = 0;
    next = 0;
    begun = 0;
    stored = 0
  }
}

/* Cuts the power, and recovers. */
active proctype power() {
  byte i;
  atomic {
    made ->
    cuts = 1;
    cut_records();
    cut_data();
    if :: x = x_d :: x_d = x fi;
    forget_dram()
  }
  do
  :: atomic {
      do
      :: i < clock && !IS_REPLAYED(PLACE(i)) -> i++
      :: else -> break
      od;
      if
      :: i < clock -> replay(PLACE(i)); i++
      :: else -> break
      fi
    }
  :: atomic { cuts == 1 -> cuts = 2; cut_data(); i = 0 }
  od;
  i = 0;
  d_step {
    data_d[0] = data[0];
    data_d[1] = data[1];
    assert(data_d[0] == newest[0]);
    assert(data_d[1] == newest[1])
  }
}
