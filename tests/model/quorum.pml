/* A lock that a majority of three nodes grants, checked by Spin: two clients.

   What is modelled, and where the code is:
     client   asks all nodes, each question and answer a step of its own; goes on with a majority or
              gives up; tells the greatest fence to those of its majority that have less; has it
              while it believes; gives back, also where no answer came
                                                src/quorum/quorum_hold.cpp (vote, agree_on_fence)
     node     one holder, the last fence, and a clock that only it has: a fence is the greatest of
              its clock, the last one + 1, and what the question says    src/kernel/permits.cpp
     faults   a question or an answer is lost (the client gives up on that node); a node that nobody
              holds or one of a minority starts anew without holder and last fence, with its clock
              (RESTARTS); a lease ends at the store after it ended for the client, at any moment

   What is checked:
     - at most one client believes that it has the lock
     - a later holder has a greater fence than each earlier one

   What is left out: how long anything takes; renewal (the same question once more); the proposal of
   a fence (it only makes fences greater); more nodes than three, more clients than two.

   A node that forgot has no vote until all leases of its time are over (redlock_options::trust_after),
   and its clock has gone past all fences that it gave (they follow it): so a restart is a node that
   grants nothing until nobody votes or believes, and then has a clock past its last fence. FORGETS_TRUSTED
   leaves that out.

   By -D: TURNS=21 (how often each client comes, a digit each), RESTARTS=n; and what is wrong, and has to be found out:
     MAX_WITHOUT_TELLING  takes the greatest fence of its majority, and tells nobody
     HALF                 half of the nodes is enough (of three: one)
     FORGETS_TRUSTED      a node that restarted votes at once */

#ifndef TURNS
#define TURNS 21
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifdef HALF
#define MAJORITY 1
#else
#define MAJORITY 2
#endif
#define NODES 3
#define NOBODY 2
#define NO_ANSWER 0

byte holder[NODES] = NOBODY;   /* who has it there */
byte last[NODES];              /* the last fence there */
byte skew[NODES];              /* what its clock shows: different on each node */
bool distrusted[NODES];
bool believes[2];
bool busy[2];                  /* it votes, or has it: for less than a lease */
byte newest;                   /* the greatest fence of anybody who had it */
byte restarts = RESTARTS;

#define greatest(a, b) ((a) > (b) -> (a) : (b))

/* A node's answer to "acquire, with a fence of at least": the fence, or NO_ANSWER. */
inline ask(n, at_least) {
  atomic {
    answer = NO_ANSWER;
    if
    :: !distrusted[n] && holder[n] == NOBODY ->
       holder[n] = me;
       last[n] = greatest(greatest(last[n] + 1, skew[n]), at_least);
       mine[n] = last[n];
       answer = mine[n]
    :: holder[n] == me ->
       mine[n] = greatest(mine[n], at_least);
       last[n] = greatest(last[n], at_least);
       answer = mine[n]
    :: else
    fi
  }
}

inline give_back(n) {
  atomic { if :: holder[n] == me -> holder[n] = NOBODY :: else fi; mine[n] = 0 }
}

proctype client(byte me) {
  byte mine[NODES], heard[NODES];
  byte answer, n, votes, fence, turns = (me == 0 -> TURNS / 10 : TURNS % 10);
  do
  :: turns > 0 ->
     turns--;
     busy[me] = true;
     /* Step 1: all are asked. An answer that is lost is no vote, and the node holds it all the same. */
     do
     :: atomic { n < NODES ->
          answer = NO_ANSWER;
          if
          :: ask(n, 0)
          :: ask(n, 0); answer = NO_ANSWER /* the answer is lost */
          :: skip /* the question is lost */
          fi;
          heard[n] = answer;
          if :: answer != NO_ANSWER -> votes++; fence = greatest(fence, answer) :: else fi;
          answer = NO_ANSWER;
          n++
        }
     :: atomic { else -> n = 0; break }
     od;
#ifndef MAX_WITHOUT_TELLING
     /* Step 2: those who have less are told. */
     if
     :: votes >= MAJORITY ->
        votes = 0;
        do
        :: atomic { n < NODES ->
             if
             :: heard[n] == NO_ANSWER
             :: heard[n] == fence -> votes++
             :: heard[n] != NO_ANSWER && heard[n] != fence ->
                if
                :: ask(n, fence); if :: answer == fence -> votes++ :: else fi
                :: ask(n, fence)
                :: skip
                fi
             fi;
             answer = NO_ANSWER;
             n++
           }
        :: atomic { else -> n = 0; break }
        od
     :: else
     fi;
#endif
     if
     :: votes >= MAJORITY ->
        atomic {
          believes[me] = true;
          assert(!believes[1 - me]);
          assert(fence > newest);
          newest = fence
        };
        believes[me] = false   /* it gives it back, or its lease ends, for it before the nodes */
     :: else
     fi;
     votes = 0;
     do
     :: atomic { n < NODES -> give_back(n); heard[n] = NO_ANSWER; n++ }
     :: atomic { else -> n = 0; fence = 0; busy[me] = false; break }
     od
  :: else -> break
  od
}

/* A node starts anew. It is trusted again when what it may have forgotten is over. */
proctype trouble() {
  byte n;
  do
  :: restarts > 0 ->
     restarts--;
     if :: n = 0 :: n = 1 :: n = 2 fi;
     atomic {
       holder[n] = NOBODY;
       skew[n] = greatest(skew[n], last[n] + 1);
       last[n] = 0;
#ifndef FORGETS_TRUSTED
       distrusted[n] = true
#endif
     };
#ifndef FORGETS_TRUSTED
     atomic {
       !busy[0] && !busy[1] && holder[0] == NOBODY && holder[1] == NOBODY &&
         holder[2] == NOBODY -> distrusted[n] = false
     }
#endif
  :: restarts == 0 -> break
  :: break
  od
}

init {
  atomic {
    skew[0] = 1; skew[1] = 7; skew[2] = 3;
    run client(0); run client(1); run trouble()
  }
}
