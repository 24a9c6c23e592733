/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.pml - the rules of lock.pml, led by what the library did; tests/model/traces makes the traces and runs this
 *
 * A step is an action of a trace of one key: time passes until it, then the model must be able to do the same. A client
 * of the model is here an attempt of the library. Times are in us. Where the model lets a key end at any moment, the
 * answer of the node says whether it did. A request counts as sent when the node executes it, the latest possible time.
 * NODES and CLIENTS come from outside: how many nodes a trace has at most, and how many attempts at a time.
 */
#define TRIES 1
#define TOKENS CLIENTS
#define TOKEN(c) (c)
#define OWNER(t) (t)
#define TRY(t) 1
#define BIT(x) (1 << ((x) & 15))
#define AT(c, n) ((c) * NODES + (n))
#define KEY(n, t) ((n) * TOKENS + (t))
#define HOLDS(c) (phase[c] == held && left[c] > 0)
#define NEEDED(c) quorum
#define SURE sure
#define WORTH lease
#define LONGEST longest
#define NO_GUARD unguarded
#define RUN_ID_ONLY unguarded
#define OWN_MEMORY(n) false
#define VIOLATED(condition, text, x, y) if :: (condition) && wrong == 0 -> wrong = BROKEN :: else fi
mtype = { yes, no, none, asking, granted, held };
mtype = { down, idle, acquire, renew, repair, raise, release, both };

/* The first thing that the model cannot do. */
#define BROKEN 1          /* an invariant of the model is violated */
#define YES_BESIDE 2      /* the node takes the key although another attempt's key certainly stands there */
#define NO_REASON 3       /* the node refuses the key, but none can stand there */
#define EXTENDS_NOTHING 4 /* the node extends a key that cannot stand there */
#define MISSES_KEY 5      /* the node misses a key that certainly stands there */
#define NO_QUORUM 6       /* the client holds the lock, but no quorum has said yes for so long */
#define NOT_ASKING 7      /* the client is granted an attempt that is over, or was never asked for */
#define NO_TOKEN 8        /* the client is granted a fencing token that no quorum shows */
#define AFTER_END 9       /* the client holds on after the end of its validity */
#define NOT_HELD 10       /* the client is told of the end of what it does not hold, or is told it twice */
#define UNASKED 11        /* the client releases what its owner still holds */
#define COUNTER 12        /* the node gives a counter that is not above the one before */
#define RAISED 13         /* the node acknowledges a number that is not above its counter, or for a key that is not there */
#define TOO_EARLY 14      /* the node has a vote again before its quarantine is over */
#define LONG_LEASE_ASKED 15 /* a lease is longer than the longest lease of all clients */

int key[NODES * TOKENS], quarantine[NODES], left[CLIENTS], vote[CLIENTS * NODES], sent[CLIENTS * NODES];
bool guarded[NODES], unknown[NODES]; /* unknown: an older memory came back, so any key may stand there */
mtype phase[CLIENTS], link[CLIENTS * NODES];
byte tries[CLIENTS], about[CLIENTS * NODES], slot[CLIENTS];
bool ended[CLIENTS];
int asked[CLIENTS], counter[NODES], shown[CLIENTS * NODES], want[CLIENTS * NODES], fence[TOKENS], highest[CLIENTS];
int before[NODES * TOKENS], had[NODES], counted[TOKENS];
byte debt[1], unsure[1];
int i, j, k, m, ok, wrong, reported, quorum, sure, lease, longest, most, unguarded, kept, more;

/* One action: what, after how many us, the node and the attempt, and what else there is to say of it. */
int what, after, node, who, says, late, number, number2, step;
c_code {
    static int read_action(void)
    {
        return scanf("%d %d %d %d %d %d %d %d %d %d", &now.what, &now.after, &now.node, &now.who, &now.says, &now.late, &now.lease,
                     &now.sure, &now.number, &now.number2) == 10;
    }
    static void report(void)
    {
        printf("%d %d\n", now.wrong, now.step);
    }
}

#include "rules.pml"

#define REFUSED(reason, condition) if :: (condition) && wrong == 0 -> wrong = reason :: else fi
/* In the order of the list in tests/model/traces */
#define BEGINS 0
#define SETS 1
#define EXTENDS 2
#define RELEASES 3
#define RAISES 4
#define GUARDS 5
#define DECLARES 6
#define RESTARTS 7
#define FORGETS 8
#define AGES 9
#define GRANTED 10
#define RENEWED 11
#define LOST 12
#define RELEASED 13
#define CRASHED 14
#define FORGOTTEN 15
#define ENDED 16
#define DETACHED 17
#define ADOPTED 18
#define ENDS 19

inline fresh(t) {
    phase[t] = none; tries[t] = 0; left[t] = 0; ended[t] = false; asked[t] = 0; fence[t] = 0; counted[t] = 0; highest[t] = 0;
    for (i : 0 .. NODES - 1) {
        key[KEY(i, t)] = 0; vote[AT(t, i)] = 0; sent[AT(t, i)] = 0; shown[AT(t, i)] = 0; want[AT(t, i)] = 0; link[AT(t, i)] = idle
    }
}
/* A run: says, whether its nodes begin with a guard; late, whether there are no guards at all. */
inline begin_run() {
    wrong = 0; step = 0; reported = 0; longest = sure; most = lease; unguarded = late;
    for (j : 0 .. TOKENS - 1) { fresh(j) }
    for (i : 0 .. NODES - 1) { guarded[i] = says || unguarded; unknown[i] = false; quarantine[i] = 0; counter[i] = 0; had[i] = 0 }
}
inline pass() {
    if :: after > 0 ->
        for (i : 0 .. NODES * TOKENS - 1) { key[i] = (key[i] == 0 -> 0 : (key[i] > after -> key[i] - after : 1)) }
        for (i : 0 .. NODES - 1) { quarantine[i] = (quarantine[i] > after -> quarantine[i] - after : 0) }
        for (i : 0 .. CLIENTS * NODES - 1) { vote[i] = (vote[i] > after -> vote[i] - after : 0) }
        for (i : 0 .. CLIENTS - 1) { left[i] = (left[i] > after -> left[i] - after : 0) }
    :: else fi
}
/* A key that stands may be as it was, or extended; an expiry only ever becomes later. */
inline prolong() {
    k = key[KEY(node, who)]; node_extends(node, who);
    key[KEY(node, who)] = (k > key[KEY(node, who)] -> k : key[KEY(node, who)])
}
inline keys_may_end() { for (i : 0 .. TOKENS - 1) { key[KEY(node, i)] = (i != who && key[KEY(node, i)] == 1 -> 0 : key[KEY(node, i)]) } }
inline ask_first() {
    if :: phase[who] == none && tries[who] == 0 -> phase[who] = asking; highest[who] = reported :: else fi
}
inline sets() {
    REFUSED(LONG_LEASE_ASKED, lease > most);
    ask_first(); kept = counter[node];
    REFUSED(COUNTER, says && number2 > 0 && (counter[node] > number2 || counter[node] == number2 && phase[who] == asking));
    if
    :: says && key[KEY(node, who)] > 0 -> prolong()
    :: says && key[KEY(node, who)] == 0 -> keys_may_end(); node_sets(node, who, number2); REFUSED(YES_BESIDE, !ok)
    :: else -> m = unknown[node];
        for (i : 0 .. TOKENS - 1) { m = m || key[KEY(node, i)] > 0 }
        REFUSED(NO_REASON, !m); ok = false
    fi;
    unknown[node] = unknown[node] && !says;
    counter[node] = (says && number2 > 0 -> number2 : kept); /* a lock without a token leaves it as it is */
    if
    /* Rule 3.9: the second request to a node is a repair, which counts from the next renewal on. */
    :: (phase[who] == asking || phase[who] == held && !(asked[who] & BIT(node))) && !late && HAS_VOTE(node) && guarded[node] -> sent[AT(who, node)] = WORTH; take_vote(AT(who, node));
        shown[AT(who, node)] = (ok -> number2 : 0)
    :: else fi
}
inline extends() {
    asked[who] = asked[who] | BIT(node);
    if
    :: says -> REFUSED(EXTENDS_NOTHING, key[KEY(node, who)] == 0); prolong();
        if :: !late && phase[who] == held -> sent[AT(who, node)] = WORTH; renew_vote(AT(who, node)) :: else fi
    :: else -> REFUSED(MISSES_KEY, key[KEY(node, who)] > 1); key[KEY(node, who)] = 0
    fi
}
inline releases() {
    REFUSED(UNASKED, HOLDS(who) && !ended[who]);
    if
    :: says -> REFUSED(EXTENDS_NOTHING, key[KEY(node, who)] == 0); node_releases(node, who)
    :: else -> REFUSED(MISSES_KEY, key[KEY(node, who)] > 1); key[KEY(node, who)] = 0
    fi;
    if :: phase[who] == asking -> give_up(who) :: else fi
}
/* The node's answer may show a counter that a release or a renewal has brought: it only ever rises. */
inline raises() {
    if
    :: says -> REFUSED(RAISED, key[KEY(node, who)] == 0 || counter[node] > number2);
        counter[node] = (number2 > number -> number2 : counter[node]); node_raises(node, who, number); REFUSED(RAISED, m != number2)
    :: else -> REFUSED(MISSES_KEY, key[KEY(node, who)] > 1); key[KEY(node, who)] = 0; ok = false; m = 0
    fi;
    if :: !late -> take_raise(who, AT(who, node)) :: else fi
}
inline is_granted() {
    REFUSED(NOT_ASKING, phase[who] != asking);
    check_grant(who);
    if
    :: late && lease <= 0 -> skip /* its machine stalled behind its last look at the clock: the grant ends before it is told */
    :: else -> REFUSED(NO_QUORUM, k == 0 || lease > k);
        if :: number > 0 -> REFUSED(NO_TOKEN, !ok || m != number) :: else fi
    fi;
    phase[who] = held; left[who] = (lease < 0 -> 0 : lease); ended[who] = false;
    if :: number > 0 && lease > 0 -> m = number; judge_fence(who, who) :: else fi;
    if :: number > reported -> reported = number :: else fi;
    if :: left[who] > 0 -> judge_window(who) :: else fi
}
inline is_renewed() {
    REFUSED(AFTER_END, !HOLDS(who)); count_votes(who); REFUSED(NO_QUORUM, lease > m);
    left[who] = (HOLDS(who) -> lease : left[who]); judge_window(who)
}
/* Its holder may be told of the end; who adopts it asks all nodes anew. */
inline is_detached() {
    REFUSED(NOT_HELD, phase[who] != held || ended[who]); left[who] = 0; ended[who] = true;
    for (i : 0 .. NODES - 1) { vote[AT(who, i)] = 0 }
}
inline is_adopted() {
    REFUSED(NOT_HELD, phase[who] != held || !ended[who]); count_votes(who); REFUSED(NO_QUORUM, lease > m);
    left[who] = (lease < 0 -> 0 : lease); ended[who] = false;
    if :: left[who] > 0 -> judge_window(who) :: else fi
}

active proctype Trace() {
    d_step {
        more = 1;
        do
        :: more -> c_code { now.more = read_action(); };
            if
            :: !more -> break
            :: more && what == BEGINS -> begin_run()
            :: more && what == ENDS -> c_code { report(); }
            :: more && what < ENDS && what > BEGINS && wrong == 0 ->
                pass();
                if
                :: what == SETS -> sets()
                :: what == EXTENDS -> extends()
                :: what == RELEASES -> releases()
                :: what == RAISES -> raises()
                :: what == GUARDS -> renew_guard(node); REFUSED(TOO_EARLY, quarantine[node] > lease)
                :: what == DECLARES -> guarded[node] = true; quarantine[node] = 0
                :: what == RESTARTS -> restart(node)
                :: what == FORGETS -> restart(node); forget(node); unknown[node] = false
                :: what == AGES -> restart(node); counter[node] = 0; unknown[node] = true;
                    for (i : 0 .. TOKENS - 1) { key[KEY(node, i)] = 1 }
                :: what == GRANTED -> quorum = sure; is_granted()
                :: what == RENEWED -> quorum = sure; is_renewed()
                :: what == LOST -> REFUSED(NOT_HELD, phase[who] != held || ended[who]); ended[who] = true; left[who] = (lease < left[who] -> lease : left[who])
                :: what == ENDED -> left[who] = 0
                :: what == RELEASED -> REFUSED(NOT_HELD, phase[who] != held); give_up(who)
                :: what == DETACHED -> is_detached()
                :: what == ADOPTED -> quorum = sure; is_adopted()
                :: what == CRASHED -> ended[who] = true
                :: what == FORGOTTEN -> fresh(who)
                :: else
                fi;
                step = (wrong == 0 -> step + 1 : step)
            :: else
            fi
        :: else -> break
        od
    } }
