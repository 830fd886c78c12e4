/* Turns of the four threads, a digit each. FOREVER: as many as they like. */
#ifndef TURNS
#define TURNS 2111
#endif
#ifdef FOREVER
#define turns_of(t) 1
#define COME skip
#else
#define turns_of(t) \
  ((t) == 0 -> TURNS / 1000 : ((t) == 1 -> TURNS / 100 % 10 : ((t) == 2 -> TURNS / 10 % 10 : TURNS % 10)))
#define COME turns--
#endif
/* The thread that may leave its write on its way. */
#ifndef LATE_WRITER
#define LATE_WRITER NOBODY
#endif
#ifndef ENDS
#define ENDS 1
#endif
#ifndef LOCAL_FENCES
#define LOCAL_FENCES 2
#endif
#ifndef MAX_BYPASS
#define MAX_BYPASS 1
#endif
#ifndef LINGERS
#define LINGERS(p) true
#endif

#define THREADS 4
#define NOBODY 7

/* acquisition::at_gate */
#define AWAY 0
#define WAITING 1
#define CHOSEN 2
#define FIRST 3
#define AT_STORE 4
#define PASSED 5
/* gate::summons */
#define NOT_CALLED 0
#define CALLED 1
#define INSISTS 2

/* ---- lines of two: */
byte seats[6] = NOBODY;
#define line(p) (2 * (p))
#define queue 4
#define first_of(row) seats[row]
#define is_empty(row) (seats[row] == NOBODY)
#define stands_in(row, who) (seats[row] == (who) || seats[(row) + 1] == (who))

inline step_up(row) {
  seats[row] = seats[row + 1];
  seats[row + 1] = NOBODY
}
inline line_up(row, who) {
  if
  :: is_empty(row) -> seats[row] = who
  :: else -> assert(seats[row + 1] == NOBODY); seats[row + 1] = who
  fi
}
inline step_away(row, who) {
  if
  :: seats[row] == who -> step_up(row)
  :: else -> assert(seats[row + 1] == who); seats[row + 1] = NOBODY
  fi
}

/* ---- the store */
byte holder = NOBODY;
byte last_fence;
bit valid;        /* the process may rely on what the holder has */
bit told_wanted;  /* a notice to the holder, on its way */

/* ---- the two processes */
bit occupied[2];
byte idle[2] = NOBODY;
byte summons[2];
byte bypassed[2];
byte present[2] = NOBODY;  /* the hold that represents the process at the gate */
byte ending[2] = NOBODY;
byte fence[2];
bit is_wanted[2];

/* ---- the threads */
byte place[THREADS];
bit roused[THREADS];
byte own[THREADS] = NOBODY;

byte ends = ENDS;
byte finished;
byte closed;

/* ---- what is checked */
bit believes[THREADS];
byte turn_fence[THREADS];
bit overtaken[THREADS];
byte last_turn = NOBODY;
byte last_turn_fence;
byte resource;

hidden byte x, y;

#define process_of(t) ((t) / 2)
#define process_of_owner(o) ((o) / 3)
#define good(o) (holder == (o) && valid)

/* ==== the store ==== */

inline vacate() {
  holder = NOBODY;
  valid = 0;
  told_wanted = 0
}

inline drop(o) {
  if
  :: holder == o -> vacate()
  :: holder != o && stands_in(queue, o) -> step_away(queue, o)
  :: else
  fi
}

inline tell_wanted() {
  if
  :: LINGERS(process_of_owner(holder)) && !told_wanted ->
     if
     :: told_wanted = 1
     :: skip  /* lost */
     fi
  :: else
  fi
}

/* Only the order of fences matters: numbers of the store that nobody has any more are closed up. */
#define is_in(f) ((f) / LOCAL_FENCES == x)
inline close_up(f, between) {
  f = (f / LOCAL_FENCES > x -> f - LOCAL_FENCES : (is_in(f) -> between : f))
}
inline rebase() {
  d_step {
    x = last_fence - 1;
    do
    :: x == 0 -> break
    :: x > 0 ->
       if
       :: is_in(turn_fence[0]) || is_in(turn_fence[1]) || is_in(turn_fence[2]) || is_in(turn_fence[3]) ||
          is_in(fence[0]) || is_in(fence[1])
       :: else ->
          close_up(fence[0], 0);
          close_up(fence[1], 0);
          close_up(turn_fence[0], 0);
          close_up(turn_fence[1], 0);
          close_up(turn_fence[2], 0);
          close_up(turn_fence[3], 0);
          close_up(last_turn_fence, x * LOCAL_FENCES - 1);
          close_up(resource, x * LOCAL_FENCES);
          last_fence--
       fi;
       x--
    od
  }
}

inline hand_over() {
  if
  :: holder == NOBODY && !is_empty(queue) ->
     holder = first_of(queue);
     step_up(queue);
     last_fence++;
     valid = 1;
     rebase();
     if
     :: !is_empty(queue) -> tell_wanted()
     :: else
     fi
  :: else
  fi
}

inline acquire(o) {
  if
  :: holder == o -> valid = 1
  :: else ->
     if
     :: stands_in(queue, o)
     :: else -> line_up(queue, o)
     fi;
     hand_over();
     if
     :: holder != o && first_of(queue) == o -> tell_wanted()
     :: else
     fi
  fi
}

#define can_learn(o) (holder == NOBODY || (holder == o && !valid) || \
  (holder != o && (!stands_in(queue, o) || \
   (first_of(queue) == o && LINGERS(process_of_owner(holder)) && !told_wanted && \
    !is_wanted[process_of_owner(holder)]))))

/* ==== owner ids ==== */

#define is_free(p, o) (holder != (o) && !stands_in(queue, o) && own[2 * (p)] != (o) && own[2 * (p) + 1] != (o) && \
                       idle[p] != (o) && ending[p] != (o))

inline new_owner(p, o) {
  if
  :: is_free(p, 3 * p) -> o = 3 * p
  :: !is_free(p, 3 * p) && is_free(p, 3 * p + 1) -> o = 3 * p + 1
  :: else -> assert(is_free(p, 3 * p + 2)); o = 3 * p + 2
  fi
}

/* ==== the gate: each inline is a section under its mutex ==== */

inline rouse(t) { roused[t] = 1 }

inline next_in_line(p, t) {
  t = first_of(line(p));
  step_up(line(p));
  roused[t] = 0;
  summons[p] = NOT_CALLED;
  bypassed[p] = 0
}

inline call_first(p) {
  if
  :: summons[p] == NOT_CALLED -> summons[p] = CALLED; y = first_of(line(p)); rouse(y)
  :: else
  fi
}

inline give_first(p, o) {
  next_in_line(p, y);
  own[y] = o;
  place[y] = PASSED
}

inline leave(p) {
  idle[p] = NOBODY;
  if
  :: is_empty(line(p)) -> occupied[p] = 0
  :: else -> next_in_line(p, y); place[y] = FIRST
  fi
}

#define stays(p, o) (good(o) && fence[p] % LOCAL_FENCES != LOCAL_FENCES - 1)
#define lingers(p, o) (LINGERS(p) && stays(p, o) && !is_wanted[p])

/* ==== a hold's end ==== */

/* hold::leaves_gate() and gate::take_next() */
inline leaves_gate(p, o, led, next) {
  next = NOBODY;
  if
  :: present[p] == o ->
     present[p] = NOBODY;
     fence[p] = 0;
     is_wanted[p] = 0;
     led = 1;
     if
     :: !is_empty(line(p)) -> next_in_line(p, next); place[next] = CHOSEN
     :: else
     fi
  :: else -> led = 0
  fi
}

inline tell_store(p, o, next) {
  drop(o);
  if
  :: next != NOBODY -> new_owner(p, own[next]); acquire(own[next])
  :: else -> hand_over()
  fi
}

inline after_end(p, o, led, next) {
  if
  :: next != NOBODY -> place[next] = AT_STORE
  :: next == NOBODY && led -> leave(p)
  :: else
  fi;
  next = NOBODY;
  led = 0;
  o = NOBODY
}

/* ==== what is checked ==== */

inline begin_turn(t) {
  turn_fence[t] = fence[process_of(t)];
  overtaken[t] = 0;
  believes[t] = 1;
  assert(believes[0] + believes[1] + believes[2] + believes[3] == 1);
  assert(turn_fence[t] > last_turn_fence);
  last_turn_fence = turn_fence[t];
  last_turn = t
}

#define has_passed(t) (turn_fence[t] == 0 || turn_fence[t] >= resource)
inline write(t) {
  if
  :: turn_fence[t] >= resource ->
     assert(!overtaken[t]);
     resource = turn_fence[t];
     if
     :: last_turn == t ->
        overtaken[0] = (t != 0 && turn_fence[0] != 0);
        overtaken[1] = (t != 1 && turn_fence[1] != 0);
        overtaken[2] = (t != 2 && turn_fence[2] != 0);
        overtaken[3] = (t != 3 && turn_fence[3] != 0)
     :: else
     fi
  :: else -> assert(!believes[t])
  fi;
  turn_fence[t] = 0;
  overtaken[t] = 0;
  if
  :: last_turn == t -> last_turn = NOBODY
  :: else
  fi;
  if
  :: has_passed(0) && has_passed(1) && has_passed(2) && has_passed(3) -> resource = 0
  :: else
  fi
}

/* ==== the processes ==== */

#define P process_of(t)
#define mine own[t]

inline turn_over(t) {
  if
  :: turns == 0 && turn_fence[t] == 0 -> finished++; goto over
  :: else -> goto away
  fi
}

proctype thread(byte t) {
  byte turns = turns_of(t);
  byte next = NOBODY;
  bit led;

away:
  do
  :: atomic { turn_fence[t] != 0 -> write(t); turn_over(t) }  /* written in its turn, arrives now */
  :: atomic { turn_fence[t] == 0 && idle[P] != NOBODY && summons[P] != INSISTS ->
       COME;
       mine = idle[P];
       idle[P] = NOBODY;
       if
       :: !is_empty(line(P)) -> bypassed[P]++
       :: else
       fi;
       break
     }
  :: atomic { turn_fence[t] == 0 -> COME; goto enter }
#ifdef FOREVER
  :: atomic { turn_fence[t] == 0 -> turns = 0; turn_over(t) }
#endif
  od;
  goto passed;

enter:
  atomic {
    if
    :: !occupied[P] -> occupied[P] = 1; place[t] = AT_STORE; new_owner(P, mine); acquire(mine)
    :: else -> line_up(line(P), t); place[t] = WAITING; roused[t] = 1
    fi
  };
  do
  :: atomic { place[t] == WAITING && roused[t] ->
       roused[t] = 0;
       if
       :: first_of(line(P)) == t && idle[P] != NOBODY -> give_first(P, idle[P]); idle[P] = NOBODY
       :: first_of(line(P)) == t && idle[P] == NOBODY && summons[P] == CALLED -> summons[P] = INSISTS
       :: else
       fi
     }
  :: atomic { place[t] == WAITING ->  /* gives up */
       place[t] = AWAY;
       roused[t] = 0;
       if
       :: first_of(line(P)) == t ->
          next_in_line(P, y);
          if
          :: idle[P] == NOBODY
          :: idle[P] != NOBODY && !is_empty(line(P)) -> call_first(P)
          :: idle[P] != NOBODY && is_empty(line(P)) && lingers(P, idle[P])
          :: idle[P] != NOBODY && is_empty(line(P)) && !lingers(P, idle[P]) ->
             mine = idle[P];
             idle[P] = NOBODY;
             leaves_gate(P, mine, led, next);
             goto give_back
          fi
       :: else -> step_away(line(P), t)
       fi;
       turn_over(t)
     }
  :: atomic { place[t] == PASSED -> place[t] = AWAY; goto passed }
  :: atomic { place[t] == FIRST -> place[t] = AT_STORE; new_owner(P, mine); acquire(mine) }
  :: atomic { place[t] == AT_STORE && good(mine) ->
       place[t] = AWAY;
       present[P] = mine;
       fence[P] = last_fence * LOCAL_FENCES;
       begin_turn(t);
       goto use
     }
  :: atomic { place[t] == AT_STORE && can_learn(mine) -> acquire(mine) }
  :: atomic { place[t] == AT_STORE ->  /* gives up */
       place[t] = AWAY;
       drop(mine);
       hand_over();
       leave(P);
       mine = NOBODY;
       turn_over(t)
     }
  od;

passed:
  atomic {
    if
    :: good(mine) -> fence[P]++; begin_turn(t)
    :: else ->
       if
       :: present[P] == mine -> present[P] = NOBODY; fence[P] = 0; is_wanted[P] = 0; leave(P)
       :: else
       fi;
       mine = NOBODY;
       goto enter
    fi
  };

use:
  atomic {
    if
    :: write(t)
    :: t == LATE_WRITER
    fi;
    believes[t] = 0;
    if
    :: is_empty(line(P)) && lingers(P, mine) -> idle[P] = mine; mine = NOBODY; turn_over(t)
    :: !is_empty(line(P)) && stays(P, mine) ->
       if
       :: summons[P] == INSISTS || bypassed[P] >= MAX_BYPASS -> give_first(P, mine)
       :: else -> idle[P] = mine; call_first(P)
       fi;
       mine = NOBODY;
       turn_over(t)
    :: !(is_empty(line(P)) && lingers(P, mine)) -> leaves_gate(P, mine, led, next)
    fi
  };
give_back:
  atomic { tell_store(P, mine, next); after_end(P, mine, led, next); turn_over(t) };
over:
  skip
}

proctype keeper(byte p) {
  byte next = NOBODY;
  bit led;
again:
  if
  :: atomic { told_wanted && process_of_owner(holder) == p ->
       told_wanted = 0;
       is_wanted[p] = (present[p] == holder);
       if
       :: idle[p] == holder && is_empty(line(p)) -> ending[p] = holder; idle[p] = NOBODY
       :: else -> goto again
       fi
     }
     goto give_back
  :: atomic { idle[p] != NOBODY && is_empty(line(p)) -> ending[p] = idle[p]; idle[p] = NOBODY }
     goto give_back
  :: atomic { present[p] != NOBODY && !good(present[p]) -> present[p] = NOBODY; fence[p] = 0; is_wanted[p] = 0 }
     atomic { leave(p); goto again }
  :: atomic { finished == THREADS && idle[p] == NOBODY -> closed++; goto over }
  fi;
give_back:
  atomic { leaves_gate(p, ending[p], led, next) };
  atomic { tell_store(p, ending[p], next); after_end(p, ending[p], led, next); goto again };
over:
  skip
}

proctype time() {
  do
  :: atomic { ends > 0 && holder != NOBODY && valid ->
       ends--;
       valid = 0;
       x = 0;
       do
       :: x < THREADS ->
          if
          :: own[x] == holder -> believes[x] = 0
          :: else
          fi;
          x++
       :: else -> break
       od
     }
  :: atomic { holder != NOBODY && !valid -> vacate() }
  :: atomic { ends > 0 && !is_empty(queue) -> ends--; step_up(queue) }
  :: atomic { ends > 0 -> ends = 0 }
  :: atomic { closed == 2 && ends == 0 && !(holder != NOBODY && !valid) -> break }
  od;
  assert(holder == NOBODY && is_empty(queue) && !occupied[0] && !occupied[1])
}

init {
  atomic {
    run thread(0);
    run thread(1);
    run thread(2);
    run thread(3);
    run keeper(0);
    run keeper(1);
    run time()
  }
}
