/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair.pml - the queue of a fair lock at its arbiter, for Spin; tests/model/fair checks it
 *
 * One key, which client CLIENTS has at first. The others come in the order of their numbers, each for one hold. A step is
 * atomic; a request at the arbiter is all of scripts/fair_acquire.lua. The other nodes are one, the rest, whose clock is
 * right; a lock needs the arbiter and the rest. Time goes in ticks, and between two of them steps happen in any order. A
 * waiting client asks when it likes: once a PAUSE at least, and when it heard of as many releases as its refusal said.
 *
 * How often these may happen: a client DIES; STEPS of the arbiter's clock, by STEP, with two ticks in between; LOSSES of all
 * that the arbiter has; SPLITS, in which the rest refuses a free lock, as if a release came late; CUTS of a client from the
 * rest. A place lasts for LIFE, with FAR others before it for FAR_LIFE. A switch is 1 where its rule is taken out.
 *
 * A client has its place from its first refusal on. Until then, after a yes in vain, one that comes later may pass.
 */
#define N CLIENTS
#define NOBODY 99
#define FIRST_HOLDER CLIENTS
#define WAITS(c) (phase[c] == waiting && !cut[c])
#define STANDS(c) (place[c] > 0)
#define COMES_BEFORE(d, at, c) (place[d] < (at) || place[d] == (at) && (d) < (c))
#define PAUSE_OF(c) (far[c] -> FAR_PAUSE : PAUSE)
#define VIOLATED(condition, text, x, y) if :: condition -> printf("VIOLATED: "); printf(text, x, y); assert(false) :: else fi
mtype = { away, waiting, asking, holding, gone, dead }; /* asking: it has the arbiter's yes, and asks the rest */

mtype phase[N] = away;
byte now, came[N], asked[N]; /* true ticks */
byte turns[N], heard[N];     /* releases that it waits for, and of which it heard */
bool far[N], cut[N];         /* many come before it; it does not reach the rest */
bool stood[N];               /* the arbiter has put it into the queue */
/* The arbiter's clock, and the clocks of its queues: of which real time these are, for places, for expiries. Rule 9.8 */
byte real = BEGIN, last, place_clock, life_clock;
bool known;
byte place[N], till[N];      /* 0: not in the queue */
bool marked[N];              /* it has the arbiter's yes */
byte key = FIRST_HOLDER, key_till = BEGIN + LEASE, rest = FIRST_HOLDER, rest_till = LEASE;
byte held_since, idle;       /* for how many ticks the lock is free and wanted */
byte dies = DIES, steps = STEPS, losses = LOSSES, splits = SPLITS, cuts = CUTS, quiet = 9; /* ticks since the last step */
hidden byte i, j, m, at, before, passed;
hidden byte exists, ok, had;

inline notify() { for (j : 0 .. N - 1) { heard[j] = (phase[j] == waiting && heard[j] < 9 -> heard[j] + 1 : heard[j]) } }
/* queue_remove(). Those behind are notified, unless they expect its release. */
inline remove(c) {
    had = place[c] > 0 && !marked[c];
    place[c] = 0; till[c] = 0; marked[c] = false;
    if :: had -> notify() :: else fi
}
/* queue_clock() */
inline read_clock() {
    passed = (real > last -> real - last : 0); /* at least 1 us: those who come later are later */
    place_clock = (known && !PLACES_BY_REAL_CLOCK -> place_clock + passed : real);
    passed = (passed > STEP_MOST && !LIFE_JUMPS -> STEP_MOST : passed);
    life_clock = (known -> life_clock + passed : real);
    life_clock = (LIFE_GOES_BACK && real < last -> life_clock - (last - real) : life_clock);
    last = real; known = true
}
/* queue_tidy() */
inline tidy(c) {
    for (i : 0 .. N - 1) {
        if
        :: till[i] > 0 && till[i] <= life_clock && !NEVER_FORGETS -> printf("The arbiter forgets client %d.\n", i); remove(i)
        :: else
        fi
    }
    m = NOBODY;
    for (i : 0 .. N - 1) {
        if
        :: STANDS(i) && !marked[i] && (m == NOBODY || COMES_BEFORE(i, place[m % N], m)) -> m = i
        :: else
        fi
    }
    if
    :: m != NOBODY && m != c && till[m % N] > life_clock + LIFE && !LONG_LIFE_FIRST -> till[m] = life_clock + LIFE
    :: else
    fi
}
inline expire() {
    key = (key_till <= real -> NOBODY : key); key_till = (key == NOBODY -> 0 : key_till);
    rest = (rest_till <= now -> NOBODY : rest); rest_till = (rest == NOBODY -> 0 : rest_till)
}
inline judge_order(c) {
    for (i : 0 .. N - 1) {
        VIOLATED(LOSSES == 0 && i < c && WAITS(i) && stood[i], "I15: client %d has its turn before client %d, which came earlier.\n", c, i)
    }
}
/* fair_acquire.lua. Rule 9.6: a client that does not reach the rest does not queue. */
inline ask(c) {
    expire();
    exists = false;
    for (i : 0 .. N - 1) { exists = exists || till[i] > 0 };
    if :: exists -> read_clock(); tidy(c) :: else fi;
    ok = exists || key != NOBODY; /* a place is looked for, or made */
    if :: !exists && ok && (!cut[c] || CUT_QUEUES) -> read_clock() :: else fi;
    at = (cut[c] && !CUT_QUEUES || NEW_PLACE -> 0 : now - came[c]);
    at = (place_clock > at -> place_clock - at : 1);
    at = (STANDS(c) -> place[c] : at);
    before = 0;
    for (i : 0 .. N - 1) {
        before = before + (exists && i != c && STANDS(i) && (!marked[i] || key == NOBODY) && COMES_BEFORE(i, at, c))
    };
    asked[c] = now; heard[c] = 0; turns[c] = 1; far[c] = false;
    if
    :: key == NOBODY && (before == 0 || NO_ORDER) ->
        key = c; key_till = real + LEASE; phase[c] = asking;
        printf("The arbiter says yes to client %d.\n", c);
        judge_order(c);
        if
        :: STANDS(c) && YES_REMOVES -> remove(c)
        :: STANDS(c) && !YES_REMOVES -> marked[c] = true;
            till[c] = (cut[c] && !CUT_QUEUES || YES_RENEWS_NOTHING -> till[c] : life_clock + LIFE)
        :: else
        fi
    :: else ->
        phase[c] = waiting; turns[c] = before + (key != NOBODY); far[c] = before >= FAR;
        printf("The arbiter refuses client %d: %d come before it.\n", c, before);
        if
        :: cut[c] && !CUT_QUEUES
        :: else -> place[c] = at; marked[c] = false; stood[c] = true;
            till[c] = life_clock + (before >= FAR -> FAR_LIFE : LIFE); judge_queue()
        fi
    fi;
    at = 0; before = 0; m = 0; passed = 0; exists = false; ok = false; had = false
}
inline judge_queue() {
    for (i : 0 .. N - 2) {
        for (j : i + 1 .. N - 1) {
            VIOLATED(STEPS == 0 && STANDS(i) && STANDS(j) && came[i] < came[j] && place[i] > place[j],
                     "I15: client %d stands behind client %d, which came later.\n", i, j)
        }
    }
}
inline fails(c) { key = (key == c -> NOBODY : key); key_till = (key == NOBODY -> 0 : key_till); phase[c] = waiting }
inline release(c) {
    key = (key == c -> NOBODY : key); key_till = (key == NOBODY -> 0 : key_till);
    rest = (rest == c -> NOBODY : rest); rest_till = (rest == NOBODY -> 0 : rest_till); notify()
}
inline client(c) {
    if
    :: d_step { phase[c] == away && (c == 0 || phase[(c + N - 1) % N] != away) -> came[c] = now; printf("Client %d comes.\n", c); ask(c) }
    :: d_step { phase[c] == waiting && (cut[c] -> now >= asked[c] + CUT_PAUSE : asked[c] != now || heard[c] >= turns[c]) -> printf("Client %d asks.\n", c); ask(c) }
    :: d_step { phase[c] == asking -> expire();
        if
        :: (rest == NOBODY || ARBITER_DECIDES) && !cut[c] ->
            VIOLATED(rest != NOBODY, "I1: client %d is granted while client %d holds.\n", c, rest);
            rest = c; rest_till = now + LEASE; phase[c] = holding; held_since = now; idle = 0;
            printf("Client %d is granted.\n", c);
            if :: GRANTED_STAYS -> skip :: else -> remove(c) fi /* rule 9.4 */
        :: else -> printf("The rest refuses client %d.\n", c); fails(c)
        fi }
    :: d_step { phase[c] == asking && splits > 0 -> splits--; printf("The attempt of client %d fails.\n", c); fails(c) }
    :: d_step { phase[c] == holding -> printf("Client %d releases.\n", c); release(c); phase[c] = gone }
    :: d_step { phase[c] == holding && key == NOBODY -> key = c; key_till = real + LEASE; /* a repair */
        printf("Client %d has its key at the arbiter again.\n", c) }
    :: d_step { dies > 0 && (phase[c] == waiting || phase[c] == asking || phase[c] == holding) -> dies--; phase[c] = dead;
        printf("Client %d dies.\n", c) }
    :: d_step { cuts > 0 && phase[c] == waiting && !cut[c] -> cuts--; cut[c] = true; printf("Client %d loses the rest.\n", c) }
    fi
}
#define DUE(c) (WAITS(c) && (now >= asked[c] + PAUSE_OF(c) || heard[c] >= turns[c]) || \
    phase[c] == asking || phase[c] == holding && now >= held_since + HOLD || phase[c] == away && now >= COME)
#define FIRST_IS_DUE (rest == FIRST_HOLDER && now >= FIRST_HOLD)
#define WANTED (WAITS(0) || WAITS(1) || WAITS(2))
#define OVER(c) (phase[c] == gone || phase[c] == dead || phase[c] == waiting && cut[c])
active proctype World() {
    do
    :: client(0)
    :: client(1)
    :: client(2)
    :: d_step { rest == FIRST_HOLDER -> release(FIRST_HOLDER); printf("The first holder releases.\n") }
    :: d_step { !DUE(0) && !DUE(1) && !DUE(2) && !FIRST_IS_DUE && !(OVER(0) && OVER(1) && OVER(2)) ->
        expire();
        idle = (WANTED && key == NOBODY && rest == NOBODY -> idle + 1 : 0);
        VIOLATED(idle > BOUND, "I9: the lock is free and wanted for %d ticks, at %d.\n", idle, now);
        now++; real++; quiet = (quiet < 9 -> quiet + 1 : 9);
        printf("A tick of time passes.\n") }
    :: d_step { steps > 0 && quiet >= 2 -> steps--; quiet = 0; real = real + STEP; printf("The arbiter's clock is set forward.\n") }
    :: d_step { steps > 0 && quiet >= 2 && real > STEP -> steps--; quiet = 0; real = real - STEP; printf("The arbiter's clock is set back.\n") }
    :: d_step { losses > 0 -> losses--; printf("The arbiter loses all it has.\n");
        for (i : 0 .. N - 1) { place[i] = 0; till[i] = 0; marked[i] = false };
        key = NOBODY; key_till = 0; known = false; place_clock = 0; life_clock = 0; last = 0 }
    od
}
