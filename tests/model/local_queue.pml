/* The local queue, checked by Spin: two processes of two threads each want one lock.

   What is modelled, and where the code is:
     thread   comes, stands in line, may pass one who still sleeps, represents its process at the
              store, has its turn, passes the hold on or gives it back; gives up at any moment while
              it waits                                           src/local/local_queue.cpp, acquire.cpp
     keeper   of a process: hears that somebody else wants the lock, gives back what lingered long
              enough, tells the local queue that a hold is lost   src/wait/idle_lock_timer.cpp, keeper.cpp
     store    one holder and its queue; each command is one step; tells a holder that lingers that
              it is wanted, which may be lost                    src/kernel/permits.cpp
     time     a lease ends in the process first (the margin), then at the store; a place in the
              queue may run out; at some moment it is quiet: no more of that, and nobody gives up

   What is checked:
     - at most one thread believes that it has the lock
     - fences grow from turn to turn, across hand-overs in a process and grants of the store
     - the resource refuses the write of a turn when a later one has written, and never that of a
       thread which believes
     - once it is quiet, everybody who waits has a turn: there is no state without a way on, and no
       endless run (NP, weak fairness)
     - at the end nothing is left, neither at the store nor at the local queues

   What is left out:
     - Time is an order of events: a duration is over "at some moment". So a thread that could pass
       the hold on may always give it back instead (local_time), what idles may be given back at any
       moment (linger), and a renewal that succeeds is no step. How long somebody waits, and how
       often others come first, is not checked.
     - Commands get an answer. A store that is away makes leases end; keeper::abandon is not here.
     - The notice "granted", and looking again in its place, are one step: the waiter finds out.
     - A process that dies or is stopped: others see that its lease ends, as every lease may.
     - Holds that do not fit each other, weights, priorities, max_waiters, eviction, lost records.
   Nobody looks again when that would change nothing: so "only that is left" has no way on.

   By -D (CMakeLists.txt says which are run):
     TURNS=2111     how often each thread comes, a digit each. FOREVER: as often as it likes (with
                    ENDS=1 that is 6 million states: held when this was written, no test)
     ENDS=n         so many leases and places end early; else any number
     LATE_WRITER=0  this thread may leave its write on its way, to arrive after its turn
     NO_LINGER      what idles is given back
     NO_LINGER_END, NO_LOOK_AGAIN   without one of the two repairs of a lost "wanted"
     LOSSES=n       so many of them are lost; else any number
   and what is wrong, and has to be found out:
     HAND_OVER_AFTER_END, GRANT_TO_CANCELLED, NO_LINGER_END with NO_LOOK_AGAIN; NO_MARGIN,
     SAME_FENCE, UNFENCED, NOT_CALLED_AWAKE, LEFT_IN_QUEUE */

#ifndef TURNS
#define TURNS 2111
#endif
#ifndef LATE_WRITER
#define LATE_WRITER NOBODY
#endif

#ifdef FOREVER
#define turns_of(t) 1
#define come skip
#else
#define turns_of(t) \
  ((t) == 0 -> TURNS / 1000 : ((t) == 1 -> TURNS / 100 % 10 : ((t) == 2 -> TURNS / 10 % 10 : TURNS % 10)))
#define come turns--
#endif

#ifdef NO_LINGER
#define LINGERS false
#else
#define LINGERS true
#endif

#define LOCAL_FENCES 2 /* the low bit of a fence is for a hand-over in the process */
#define MAX_BYPASS 1
#define NOBODY 7

/* ---- lines of two ---------------------------------------------------------------------------- */

byte seats[6] = NOBODY;
#define line_at(p) (2 * (p)) /* threads, at the local queue of process p */
#define queue 4              /* owners, at the store */

#define first_of(row) seats[row]
#define is_empty(row) (seats[row] == NOBODY)
#define stands_in(row, who) (seats[row] == (who) || seats[(row) + 1] == (who))

inline move_up(row) {
  seats[row] = seats[row + 1];
  seats[row + 1] = NOBODY
}

inline line_up(row, who) {
  if
  :: is_empty(row) -> seats[row] = who
  :: else -> assert(seats[row + 1] == NOBODY); seats[row + 1] = who
  fi
}

inline step_out(row, who) {
  if
  :: seats[row] == who -> move_up(row)
  :: else -> assert(seats[row + 1] == who); seats[row + 1] = NOBODY
  fi
}

/* ---- what there is ---------------------------------------------------------------------------- */

/* The store. Owners 0, 1, 2 are the first process's, 3, 4, 5 the second's. */
byte holder = NOBODY;
byte last_fence;
bit valid;       /* time: the process may rely on what the holder was granted */
bit told_wanted; /* a notice to the holder, on its way */

/* The processes. */
bit occupied[2];
byte idle[2] = NOBODY;
byte summons[2];
byte bypassed[2];
byte present[2] = NOBODY; /* the hold that occupies the local queue: hold::in_local_queue_ */
byte fence[2];            /* its fence */
bit is_wanted[2];         /* somebody else wants it */
byte given_back[2] = NOBODY; /* by the keeper */

/* local_queue::summons */
#define NOT_CALLED 0
#define CALLED 1
#define INSISTS 2

/* The threads. */
byte place[4];
bit roused[4];
byte own[4] = NOBODY; /* the owner it asks for, or the hold that it has */

/* acquisition::in_local_queue, and what follows it */
#define AWAY 0
#define WAITING 1
#define CHOSEN 2
#define FIRST 3
#define AT_STORE 4
#define PASSED 5

#ifdef ENDS
byte ends = ENDS;
#define may_end (!quiet && ends > 0)
#define end_one ends--
#else
#define may_end !quiet
#define end_one skip
#endif
bit quiet; /* from now on no lease and no place ends early, and nobody gives up: all must get on */
byte finished; /* threads */
byte closed;   /* keepers */
#ifdef LOSSES
byte losses = LOSSES;
#define lose_it losses > 0 -> losses--
#else
#define lose_it skip
#endif

/* What is checked. */
bit believes[4];
byte turn_fence[4]; /* until its write has arrived */
bit overtaken[4];   /* a later turn has written */
byte last_turn = NOBODY;
byte last_turn_fence;
byte resource; /* the greatest fence it has seen */

hidden byte x, y;

#define process_of(t) ((t) / 2)
#define process_of_owner(o) ((o) / 3)
#define is_good(o) (holder == (o) && valid)

/* ---- fences ----------------------------------------------------------------------------------- */

/* Only their order matters. The store's numbers that nobody has any more are closed up, so that any
   number of turns has a bounded number of states. */
#define is_in(f) ((f) / LOCAL_FENCES == x)
inline close_up(f, between) {
  f = (f / LOCAL_FENCES > x -> f - LOCAL_FENCES : (is_in(f) -> between : f))
}

inline close_up_fences() {
  d_step {
    x = last_fence - 1;
    do
    :: x == 0 -> break
    :: x > 0 ->
       if
       :: is_in(turn_fence[0]) || is_in(turn_fence[1]) || is_in(turn_fence[2]) ||
          is_in(turn_fence[3]) || is_in(fence[0]) || is_in(fence[1])
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

/* ---- the store: the kernel's steps ------------------------------------------------------------ */

inline vacate() {
  holder = NOBODY;
  valid = 0;
  told_wanted = 0
}

inline drop(o) {
  if
  :: holder == o -> vacate()
  :: holder != o && stands_in(queue, o) -> step_out(queue, o)
  :: else
  fi
}

inline tell_wanted() {
  if
  :: LINGERS && !told_wanted ->
     if
     :: told_wanted = 1
     :: lose_it
     fi
  :: else
  fi
}

inline hand_over() {
  if
  :: holder == NOBODY && !is_empty(queue) ->
     holder = first_of(queue);
     move_up(queue);
     last_fence++;
     valid = 1;
     close_up_fences();
     if
     :: !is_empty(queue) -> tell_wanted()
     :: else
     fi
  :: else
  fi
}

inline acquire(o) {
  if
  :: holder == o -> valid = 1 /* granted, and heard too late: it has not begun its turn */
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

/* What looking again may change. */
#ifdef NO_LOOK_AGAIN
#define would_tell(o) false
#else
#define would_tell(o) \
  (first_of(queue) == o && LINGERS && !told_wanted && !is_wanted[process_of_owner(holder)])
#endif
#define worth_a_look(o) \
  (holder == NOBODY || (holder == o && !valid) || \
   (holder != o && (!stands_in(queue, o) || would_tell(o))))

/* ---- owner ids: the least that nobody uses ---------------------------------------------------- */

#define is_free(p, o) \
  (holder != (o) && !stands_in(queue, o) && own[2 * (p)] != (o) && own[2 * (p) + 1] != (o) && \
   idle[p] != (o) && given_back[p] != (o))

inline new_owner(p, o) {
  if
  :: is_free(p, 3 * p) -> o = 3 * p
  :: !is_free(p, 3 * p) && is_free(p, 3 * p + 1) -> o = 3 * p + 1
  :: else -> assert(is_free(p, 3 * p + 2)); o = 3 * p + 2
  fi
}

/* ---- the local queue --------------------------------------------------------------------------------- */

inline next_in_line(p, t) {
  t = first_of(line_at(p));
  move_up(line_at(p));
  roused[t] = 0;
  summons[p] = NOT_CALLED;
  bypassed[p] = 0
}

inline call_first(p) {
  if
  :: summons[p] == NOT_CALLED ->
     summons[p] = CALLED;
#ifndef NOT_CALLED_AWAKE
     roused[first_of(line_at(p))] = 1
#endif
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
  :: is_empty(line_at(p)) -> occupied[p] = 0
  :: else -> next_in_line(p, y); place[y] = FIRST
  fi
}

#ifdef HAND_OVER_AFTER_END
#define is_kept(o) true
#else
#define is_kept(o) is_good(o)
#endif
#define stays(p, o) (is_kept(o) && fence[p] % LOCAL_FENCES != LOCAL_FENCES - 1)
#define lingers(p, o) (LINGERS && stays(p, o) && !is_wanted[p])

/* ---- the end of a hold: hold::end(), in two steps --------------------------------------------- */

inline absent(p) {
  present[p] = NOBODY;
  fence[p] = 0;
  is_wanted[p] = 0
}

/* From here on the keeper does not see to the local queue for it; and who is first in line is chosen. */
inline begin_end(p, o, in_local_queue, next) {
  if
  :: present[p] == o ->
     absent(p);
     in_local_queue = 1;
     if
     :: !is_empty(line_at(p)) -> next_in_line(p, next); place[next] = CHOSEN
     :: else
     fi
  :: else
  fi
}

/* At the store: giving it back, and queueing for the next of this process, are one command. */
inline end(p, o, in_local_queue, next) {
  drop(o);
  if
  :: next != NOBODY ->
     new_owner(p, own[next]);
     acquire(own[next]);
     place[next] = AT_STORE
  :: next == NOBODY && in_local_queue -> hand_over(); leave(p)
  :: else -> hand_over()
  fi;
  next = NOBODY;
  in_local_queue = 0;
  o = NOBODY
}

/* ---- what is checked -------------------------------------------------------------------------- */

inline begin_turn(t) {
  turn_fence[t] = fence[process_of(t)];
  overtaken[t] = 0;
  believes[t] = 1;
  assert(believes[0] + believes[1] + believes[2] + believes[3] == 1);
  assert(turn_fence[t] > last_turn_fence);
  last_turn_fence = turn_fence[t];
  last_turn = t
}

#ifdef UNFENCED
#define is_accepted(t) true
#else
#define is_accepted(t) (turn_fence[t] >= resource)
#endif
#define is_later(t, other) (other != t && turn_fence[other] != 0)
#define will_not_mind(t) (turn_fence[t] == 0 || turn_fence[t] >= resource)

inline write(t) {
  if
  :: is_accepted(t) ->
     assert(!overtaken[t]);
     resource = turn_fence[t];
     if
     :: last_turn == t ->
        overtaken[0] = is_later(t, 0);
        overtaken[1] = is_later(t, 1);
        overtaken[2] = is_later(t, 2);
        overtaken[3] = is_later(t, 3)
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
  :: will_not_mind(0) && will_not_mind(1) && will_not_mind(2) && will_not_mind(3) -> resource = 0
  :: else
  fi
}

/* ---- the processes ---------------------------------------------------------------------------- */

inline go_away() {
  if
  :: turns == 0 && turn_fence[t] == 0 -> finished++; goto over
  :: else -> goto away
  fi
}

#define P process_of(t)
#define mine own[t]

proctype thread(byte t) {
  byte turns = turns_of(t);
  byte next = NOBODY;
  bit in_local_queue;

away:
  do
  :: atomic { turn_fence[t] != 0 -> write(t); go_away() } /* was on its way */
  :: atomic { /* local_queue::take_idle */
       turn_fence[t] == 0 && idle[P] != NOBODY && summons[P] != INSISTS ->
       come;
       mine = idle[P];
       idle[P] = NOBODY;
       if
       :: !is_empty(line_at(P)) -> bypassed[P]++
       :: else
       fi;
       break
     }
  :: atomic { turn_fence[t] == 0 -> come; goto enter }
#ifdef FOREVER
  :: atomic { turn_fence[t] == 0 -> turns = 0; go_away() }
#endif
  od;
  goto passed;

enter: /* local_queue::join; something may idle since it looked */
  atomic {
    if
    :: idle[P] != NOBODY && is_empty(line_at(P)) -> mine = idle[P]; idle[P] = NOBODY; goto passed
    :: !occupied[P] -> occupied[P] = 1; place[t] = AT_STORE; new_owner(P, mine); acquire(mine)
    :: else -> line_up(line_at(P), t); place[t] = WAITING; roused[t] = 1
    fi
  };
wait:
  do
  :: atomic { /* local_queue::own_turn */
       place[t] == WAITING && roused[t] ->
       roused[t] = 0;
       if
       :: first_of(line_at(P)) == t && idle[P] != NOBODY -> give_first(P, idle[P]); idle[P] = NOBODY
       :: first_of(line_at(P)) == t && idle[P] == NOBODY && summons[P] == CALLED ->
          summons[P] = INSISTS
       :: else
       fi
     }
  :: atomic { /* local_queue::step_out */
       !quiet && place[t] == WAITING ->
       place[t] = AWAY;
       roused[t] = 0;
#ifndef GRANT_TO_CANCELLED
       if
       :: first_of(line_at(P)) == t ->
          next_in_line(P, y);
          if
          :: idle[P] == NOBODY
          :: idle[P] != NOBODY && !is_empty(line_at(P)) -> call_first(P)
          :: idle[P] != NOBODY && is_empty(line_at(P)) ->
             mine = idle[P];
             idle[P] = NOBODY;
             begin_end(P, mine, in_local_queue, next);
             goto give_back
          fi
       :: else -> step_out(line_at(P), t)
       fi;
#endif
       go_away()
     }
  :: atomic { place[t] == PASSED -> place[t] = AWAY; break }
  :: atomic { place[t] == FIRST -> place[t] = AT_STORE; new_owner(P, mine); acquire(mine) }
  :: atomic { /* told, or looked again */
       place[t] == AT_STORE && is_good(mine) ->
       place[t] = AWAY;
       present[P] = mine;
       fence[P] = last_fence * LOCAL_FENCES;
       begin_turn(t);
       goto use
     }
  :: atomic { place[t] == AT_STORE && worth_a_look(mine) -> acquire(mine) }
  :: atomic { /* gives up at the store: leave_nothing_behind */
       !quiet && place[t] == AT_STORE ->
       place[t] = AWAY;
#ifndef LEFT_IN_QUEUE
       drop(mine);
       hand_over();
#endif
       leave(P);
       mine = NOBODY;
       go_away()
     }
  od;

passed: /* hold::next_turn */
  atomic {
    if
    :: is_kept(mine) ->
#ifndef SAME_FENCE
       fence[P]++;
#endif
       begin_turn(t)
    :: else ->
       if
       :: present[P] == mine ->
          absent(P);
          mine = NOBODY;
          if
          :: leave(P) /* it had taken what was idle */
          :: place[t] = AT_STORE; new_owner(P, mine); acquire(mine); goto wait
          fi
       :: else
       fi;
       mine = NOBODY;
       goto enter
    fi
  };

use: /* hold::release and local_queue::pass_on */
  atomic {
    if
    :: write(t)
    :: t == LATE_WRITER
    fi;
    believes[t] = 0;
    if
    :: is_empty(line_at(P)) && lingers(P, mine) -> idle[P] = mine; mine = NOBODY; go_away()
    :: !is_empty(line_at(P)) && stays(P, mine) ->
       if
       :: summons[P] == INSISTS || bypassed[P] >= MAX_BYPASS -> give_first(P, mine)
       :: else -> idle[P] = mine; call_first(P)
       fi;
       mine = NOBODY;
       go_away()
    :: !(is_empty(line_at(P)) && lingers(P, mine)) -> begin_end(P, mine, in_local_queue, next)
    fi
  };
give_back:
  atomic { end(P, mine, in_local_queue, next); go_away() };
over:
  skip
}

/* linger_watch, and the keeper's part */
proctype keeper(byte p) {
  byte next = NOBODY;
  bit in_local_queue;

watch:
  if
  :: atomic { /* "wanted" */
       told_wanted && process_of_owner(holder) == p ->
       told_wanted = 0;
       is_wanted[p] = (present[p] == holder);
       if
       :: idle[p] == holder && is_empty(line_at(p)) -> given_back[p] = holder; idle[p] = NOBODY
       :: else -> goto watch
       fi
     }
#ifndef NO_LINGER_END
  :: atomic { /* linger is over */
       idle[p] != NOBODY && is_empty(line_at(p)) -> given_back[p] = idle[p]; idle[p] = NOBODY
     }
#else
  :: atomic { /* nobody comes any more: local_queue::expect_one_less */
       finished == 4 && idle[p] != NOBODY && is_empty(line_at(p)) ->
       given_back[p] = idle[p];
       idle[p] = NOBODY
     }
#endif
  :: atomic { /* hold::announce_lost */
       present[p] != NOBODY && !is_good(present[p]) -> absent(p)
     }
     atomic { leave(p); goto watch }
  :: atomic { finished == 4 && idle[p] == NOBODY -> closed++; goto over }
  fi;
  atomic { begin_end(p, given_back[p], in_local_queue, next) };
  atomic { end(p, given_back[p], in_local_queue, next); goto watch };
over:
  skip
}

inline stop_believing(t) {
  if
  :: own[t] == holder -> believes[t] = 0
  :: else
  fi
}

proctype time() {
  do
  :: atomic { /* a lease, in its process */
       may_end && holder != NOBODY && valid ->
       end_one;
       valid = 0;
#ifndef NO_MARGIN
       stop_believing(0);
       stop_believing(1);
       stop_believing(2);
       stop_believing(3)
#endif
     }
  :: atomic { holder != NOBODY && !valid -> vacate() } /* at the store */
  :: atomic { /* a place in the queue */
       may_end && !is_empty(queue) ->
       end_one;
       move_up(queue)
     }
  :: atomic { !quiet -> quiet = 1 }
  :: atomic { quiet && closed == 2 && (holder == NOBODY || valid) -> break }
  od;
  assert(holder == NOBODY && is_empty(queue));
  assert(!occupied[0] && !occupied[1])
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
