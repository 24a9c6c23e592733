/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync.pml - who runs the loop of a sync client: the hand-overs of src/api/sync_loop.c between threads
 *
 * A statement is an atomic operation, or what one thread does alone. Job 0 waits for a lock, which job 1 of another
 * thread releases. Job 2 has a callback, which only the own thread may call; who started it does not wait. tests/model/sync
 * gives the switches, each of which takes out one precaution. The own thread looks around after 2 ms: here, when nothing else
 * can happen. Then nobody may need that look: it would be a lost wake-up.
 */
mtype = { nobody, caller, own };            /* leader */
mtype = { under_way, awaited, ended };      /* of a job */
#define BIT(j) (1 << (j))
#define JOBS 3
#define ALL_DONE (done == 7)
#define QUIET (n_taken == 0 && n_told == 0)

mtype leader = nobody, state[JOBS] = under_way;
bool wanted, sleeps, woken;                 /* woken: the loop's descriptor can be read */
bool own_sleeps, job_sleeps[JOBS];          /* on a futex */
byte posted, n_told, n_own_calls, n_leads;
byte taken, n_taken, over, done, turning;   /* of whoever leads. over: ended, and not let go yet */
bool pending, released, served;             /* job 0 waits for the lock; job 1 has released it */

inline wake_loop() { woken = true }
inline call_own() {
    n_own_calls = (n_own_calls + 1) % 4;
    if :: !NO_CALL -> own_sleeps = false :: else fi
}
inline become(who) { atomic { became = (leader == nobody); if :: became -> leader = who :: else fi } }
inline have_led() { become(own); if :: became -> became = false; call_own() :: else fi }
inline leave_alone() {
    leader = nobody;
    if :: posted != 0 && !NO_SECOND_LOOK -> have_led() :: else fi
}
inline post(j) {
    if :: j == 2 -> n_told++ :: else fi;
    posted = posted | BIT(j);
    if :: sleeps -> atomic { was = sleeps; sleeps = false }; if :: was -> was = false; wake_loop() :: else fi :: else fi
}
inline finish(j) { n_taken--; served = true; over = over | BIT(j) }
inline run_jobs() {
    d_step {
        for (i : 0 .. JOBS - 1) { n_taken = n_taken + ((posted >> i) & 1) }
        taken = taken | posted; posted = 0; i = 0
    };
    atomic { do
    :: taken != 0 && (leader == own || n_told == 0 || ANYBODY_TELLS) ->
        if
        :: taken & BIT(2) -> taken = taken & ~BIT(2); assert(leader == own); /* its callback runs in the own thread */
            n_taken--; done = done | BIT(2); n_told--
        :: !(taken & BIT(2)) && (taken & BIT(1)) -> taken = taken & ~BIT(1); released = true; finish(1)
        :: taken == BIT(0) -> taken = 0; if :: released -> finish(0) :: else -> pending = true fi
        fi
    :: else -> break
    od }
}
inline turn() {
    atomic { turning++; assert(turning == 1); served = false }; /* one thread runs the loop */
    run_jobs();
    if :: !SLEEPS_LATE -> sleeps = true :: else fi;
    at_once = over != 0 || taken != 0 || wanted;
    at_once = at_once || posted != 0;
    if :: SLEEPS_LATE -> sleeps = true :: else fi;
    if :: at_once -> skip :: else ->
end_in_loop: (woken || pending && released) fi;
    at_once = false;
    if :: woken -> woken = false; run_jobs() :: else fi;
    atomic { if :: pending && released -> pending = false; finish(0) :: else fi; sleeps = false };
    for (k : 0 .. 1) { /* each is let go */
        if :: over & BIT(k) ->
            over = over & ~BIT(k);
            atomic { old = state[k]; if :: !TWO_STEPS -> state[k] = ended :: else fi };
            if :: TWO_STEPS -> state[k] = ended :: else fi;
            if :: old == awaited -> job_sleeps[k] = false :: else fi
        :: else fi
    };
    atomic { k = 0; old = 0; turning-- }
}
#define LOCALS bool became, was, at_once; byte i, k; mtype old

proctype Caller(byte j) {
    LOCALS;
    post(j);
    do
    :: state[j] == ended -> break
    :: else ->
        if
        :: n_told > 0 -> have_led()
        :: else -> become(caller);
            if
            :: became -> /* lead */
                became = false; n_leads = (n_leads + 1) % 4;
                do
                :: turn(); if :: state[j] != ended && !wanted && n_told == 0 -> skip :: else -> break fi
                od;
                if
                :: (QUIET || LEAVES_WORK) && !wanted -> leave_alone()
                :: else -> leader = own; call_own()
                fi;
                goto again
            :: else
            fi
        fi;
        if :: STORES_AWAITED -> state[j] = awaited
        :: else -> atomic { if :: state[j] == under_way -> state[j] = awaited :: else fi }
        fi;
        atomic { if :: state[j] == awaited -> job_sleeps[j] = true :: else fi };
        !job_sleeps[j];
again:  skip
    od;
    done = done | BIT(j)
}

proctype Starter() { LOCALS; post(2); have_led() }

proctype Own() {
    LOCALS; byte mine, seen;
    do
    :: seen = n_own_calls;
        if
        :: leader == own ->
            wanted = false;
            do
            :: turn(); if :: !served || !QUIET -> skip :: else -> break fi
            od;
            mine = n_leads; leave_alone()
        :: else ->
            atomic { if :: n_own_calls == seen || NO_COMPARE -> own_sleeps = true :: else fi };
            do
            :: !own_sleeps -> break
            :: timeout -> /* nobody can go on: who needs this thread has called it, and no job waits for a leader */
                assert(leader != own && (leader != nobody || posted == 0 && QUIET));
                own_sleeps = false;
                if :: ALL_DONE -> goto end_own :: else fi
            od;
            if
            :: leader == own
            :: else ->
                if
                :: mine != n_leads -> mine = n_leads
                :: else -> become(own);
                    if :: became -> became = false
                    :: else -> wanted = true; atomic { was = sleeps; sleeps = false };
                        if :: was -> was = false; wake_loop() :: else fi
                    fi
                fi
            fi
        fi
    od;
end_own: skip
}

init { atomic { run Own(); run Caller(0); run Caller(1); run Starter() } }
