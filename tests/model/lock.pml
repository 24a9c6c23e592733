/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.pml - the protocol of the lock, for Spin; tests/model/run checks it
 *
 * Time goes in ticks; between two of them all steps happen in any order, so each pause and delay is here. A clock may be
 * wrong by DRIFT ticks a lease: a key certainly lives LEASE - DRIFT ticks, then it may go at any moment, or stay. A
 * request whose connection is dropped is lost, or executed at any later time. Nodes restart, with or without memory.
 *
 * A world says how many NODES, QUORUM, CLIENTS, TRIES (attempts of client 0, at most 2; OTHER_TRIES of the others), RESTARTS,
 * FLUSHES, LATE requests and PERMITS there are, how long a LEASE is, and LAST_TICK (255: time has no end). AHEAD grants of
 * others came before, a node each; then only raises are LATE. 1 or 0: FLIPS (in place of a restart a role or an id
 * changes), DEBTS, FENCE, NO_CLOCK (a key may end at any time, validity never), SHARED, FIRM (nobody gives up a request by
 * itself). A switch is 1 where its rule is taken out. The number beside it is that of the rule in src/protocol.md.
 */
#define TOKENS (CLIENTS * TRIES)
#define TOKEN(c) ((c) * TRIES + (SAME_TOKEN -> 0 : tries[c])) /* rule 1.1: every attempt has a token of its own */
#define OWNER(t) ((t) / TRIES)
#define TRY(t) (1 << (t) % TRIES)
#define BIT(x) (1 << (x))
#define SURE (LEASE + LONG_LEASE - DRIFT)                     /* rule 4.6: a lease beyond the max lease is refused */
#define LONGEST (LEASE - DRIFT)                               /* rule 4.2: the quarantine of a node without memory */
#define WORTH (SURE + NO_ALLOWANCE * DRIFT)                   /* rule 1.3: validity is the lease less the allowance */
#define NEEDED(c) (QUORUM - HALF_QUORUM - (OTHER_N && c > 0)) /* rule 1.4: a majority; rule 4.5: another N is refused */
#define NODE_OF(c, n) (SERVER_TWICE && c == 0 && n == 1 -> 0 : n) /* rule 4.8: a server that is listed twice is refused */
#define AT(c, n) ((c) * NODES + (n))
#define KEY(n, t) ((n) * TOKENS + (t))
/* Rule 4.15: the guard's process never took another's memory. What a master shows of a former role, it may forget. */
#define OWN_MEMORY(n) (FLIPS && !other_run[FLIPS * (n)] && (foreign[FLIPS * (n)] == 0 || BY_SECOND_ID && foreign[FLIPS * (n)] == 2))
#define HOLDS(c) (phase[c] == held && left[c] > 0)
mtype = { yes, no, none, asking, granted, held };
mtype = { down, idle, acquire, renew, repair, raise, release, both }; /* both: an acquire and its release behind it */

byte key[NODES * TOKENS];   /* 0: not there; 1: may go at any moment; 1 + k: certainly lives k more ticks */
byte quarantine[NODES];     /* ticks for which the node's yes does not count for an acquire */
bool guarded[NODES] = true; /* the node's guard is of its present life; at first by quorlock bootstrap */
bool other_run[FLIPS * NODES + 1]; /* the node's guard is of another process */
byte foreign[FLIPS * NODES + 1]; /* 1: the process took another server's memory, and shows that; 2: it forgot that it did */
byte ahead = AHEAD, restarts = RESTARTS, flushes = FLUSHES, lates = LATE; /* what may still come */
byte now; /* ticks, where they are bounded */
mtype phase[CLIENTS] = none;
byte tries[CLIENTS];        /* attempts that are over */
byte left[CLIENTS];         /* ticks of validity, as the owner knows them */
bool ended[CLIENTS];        /* the owner was told the end of its last grant */
byte asked[CLIENTS];        /* bits: the nodes that this attempt asked */
byte slot[CLIENTS];         /* the permit that it asks for */
byte vote[CLIENTS * NODES]; /* ticks for which the node's last yes is worth something */
mtype link[CLIENTS * NODES] = idle; /* a connection, or the request on it: */
byte about[CLIENTS * NODES], sent[CLIENTS * NODES]; /* its token; what a yes is worth by now, counted from when it left */
mtype late[CLIENTS * NODES] = none; byte late_about[CLIENTS * NODES]; /* a request that outlived its connection; its token */
byte late_want[FENCE * CLIENTS * NODES + 1]; /* the number in it */
/* Bits: attempts whose release is owed to the node; attempts with an unanswered request that may yet set the key. */
byte debt[DEBTS * CLIENTS * NODES + 1], unsure[DEBTS * CLIENTS * NODES + 1];
byte counter[FENCE * NODES + 1], shown[FENCE * CLIENTS * NODES + 1]; /* what this attempt was shown of it */
byte want[FENCE * CLIENTS * NODES + 1]; /* the number in the request */
byte fence[FENCE * TOKENS + 1], highest[FENCE * CLIENTS + 1]; /* tokens reported: of a grant; before an attempt began */
/* Bits: the attempts that held the node earlier; those that held it at all; the nodes that a grant counted. */
byte before[FENCE * NODES * TOKENS + 1], had[FENCE * NODES + 1], counted[FENCE * TOKENS + 1];
hidden byte i, j, k, m, ok;
#define VIOLATED(condition, text, x, y) if :: condition -> printf("VIOLATED: "); printf(text, x, y); assert(false) :: else fi
#include "rules.pml"
/* One connection of a client, and the node at its other end */
#define C (_pid / NODES)
#define P (_pid % NODES)
#define N NODE_OF(C, P)
#define L link[_pid]
#define T about[_pid]
#define SAID (ok -> yes : no)
#define LOSS_MATTERS (TRIES > 1 || DEBTS || WORTH > 1 || L == raise) /* else: as if on its way for ever */
#define IN_TURN !(C == 0 && tries[0] == 0 && P > 0 && L == acquire && link[AT(C, P) - (P > 0)] == acquire) /* nodes are alike */
#define ANSWERED L = idle; T = 0; sent[_pid] = 0
#define RAISE_TO(x) d_step { FENCE && L == idle && phase[C] == granted && shown[_pid] > 0 && shown[AT(C, x)] > shown[_pid] -> \
        want[_pid] = shown[AT(C, x)]; L = raise; T = TOKEN(C); printf("Client %d asks node %d to raise its counter to %d.\n", C, N, want[_pid]) }
active [CLIENTS * NODES] proctype Link() {
    do
    :: d_step { L == down -> L = idle; renew_guard(N); other_run[FLIPS * N] = false; /* rule 4.1: each new connection reads the guard */
        printf("Client %d connects to node %d, which has no vote for %d ticks.\n", C, N, quarantine[N]) }
    :: d_step { L == acquire && IN_TURN -> node_sets(N, T, want[FENCE * _pid]);
        ok = ok || SERVER_TWICE && key[KEY(N, T)] > 0; take_vote(_pid);
        printf("Node %d answers client %d: %e.\n", N, C, SAID);
        if :: FENCE -> want[_pid] = 0; shown[_pid] = (ok -> counter[N] : 0); printf("Its counter is %d.\n", counter[N]) :: else fi; ANSWERED }
    :: d_step { L == both -> node_sets(N, T, 0); L = release;
        printf("Node %d answers client %d, which has given up: %e.\n", N, C, SAID) }
    :: d_step { L == renew -> node_extends(N, T); printf("Node %d answers the renewal of client %d: %e.\n", N, C, SAID);
        renew_vote(_pid); count_votes(C);
        VIOLATED(LATE_RENEWAL && phase[C] == held && left[C] == 0 && m > 0, "I6: client %d holds again for %d ticks after its end.\n", C, m);
        left[C] = (HOLDS(C) -> m : left[C]); /* rule 3.4: never after the end */
        if :: !ok && HOLDS(C) -> L = repair; printf("Client %d asks node %d to take its key again.\n", C, N)
        :: else -> ANSWERED fi }
    :: d_step { L == renew && key[KEY(N, T)] > 1 -> ok = key[KEY(N, T)];
        key[KEY(N, T)] = (SHORTENS -> 1 : ok); /* rule 3.3: an expiry only ever becomes later */
        printf("Node %d gets a renewal of client %d with a shorter lease.\n", N, C); ANSWERED }
    :: d_step { L == repair -> node_sets(N, T, 0); ANSWERED; /* rule 3.9: it counts from the next renewal on */
        printf("Node %d answers the repair of client %d: %e.\n", N, C, SAID) }
    :: d_step { L == release -> node_releases(N, T);
        printf("Node %d executes a release of client %d. Was the key there? %e.\n", N, C, SAID);
        if
        :: !DEBTS -> skip
        :: DEBTS && (unsure[_pid] & TRY(T)) && late[_pid] != none && !(ok -> FOUND_ENDS : FOUND_NOTHING_ENDS) -> owe(C, P, T) /* rules 2.6 and 2.7 */
        :: else -> debt[_pid] = debt[_pid] & ~TRY(T); unsure[_pid] = unsure[_pid] & ~TRY(T)
        fi; ANSWERED }
    :: d_step { L != down && L != idle && LOSS_MATTERS && IN_TURN -> cut(C, P);
        printf("The connection of client %d to node %d ends; its request is lost.\n", C, N) }
    :: d_step { lates > 0 && L != down && L != idle && (L == raise) == (AHEAD > 0) && late[_pid] == none && IN_TURN ->
        lates--; late[_pid] = L; late_about[_pid] = T; late_want[FENCE * _pid] = want[FENCE * _pid]; cut(C, P);
        printf("The connection of client %d to node %d ends; its request (%e) is still on its way.\n", C, N, late[_pid]) }
    :: d_step { late[_pid] != none -> printf("Node %d executes the late request of client %d (%e).\n", N, C, late[_pid]);
        if
        :: late[_pid] == release -> node_releases(N, late_about[_pid])
        :: late[_pid] == raise -> node_raises(N, late_about[_pid], late_want[FENCE * _pid])
        :: late[_pid] == renew -> node_extends(N, late_about[_pid])
        :: else -> node_sets(N, late_about[_pid], 0) fi;
        late_about[_pid] = (late[_pid] == both -> late_about[_pid] : 0); late[_pid] = (late[_pid] == both -> release : none);
        late_want[FENCE * _pid] = 0 }
    :: d_step { late[_pid] != none -> late[_pid] = none; late_about[_pid] = 0; late_want[FENCE * _pid] = 0;
        printf("T_late is over for the late request of client %d to node %d: it is lost.\n", C, N) }
    :: d_step { DEBTS && L == idle && debt[_pid] > 0 -> L = release; T = C * TRIES + 1 - (debt[_pid] & 1);
        printf("Client %d sends node %d a release that it owes.\n", C, N) }
    :: d_step { CLOSED_IN_ORDER && debt[_pid] > 0 && late[_pid] != none -> debt[_pid] = 0; unsure[_pid] = 0; /* rule 2.5: a reset */
        printf("T_late is over for client %d: it does not owe node %d any more.\n", C, N) }
    :: RAISE_TO((P + 1) % NODES) :: RAISE_TO((P + 2) % NODES)
#if NODES > 3
    :: RAISE_TO((P + 3) % NODES) :: RAISE_TO((P + 4) % NODES)
#endif
    :: d_step { L == raise -> node_raises(N, T, want[_pid]); want[_pid] = 0; ANSWERED; take_raise(C, _pid);
        printf("Node %d answers the raise of client %d: %e, ", N, C, SAID); printf("%d.\n", m) }
    :: d_step { L == raise -> node_raises(N, T, want[_pid]); cut(C, P);
        printf("Node %d executes a raise of client %d, and the connection ends.\n", N, C) }
    od }

#define Z (_pid - CLIENTS * NODES)
#define FIRST_TIME_IN_TURN (Z == 0 || SHARED || TRIES > 1 || tries[Z] > 0 || tries[Z - 1] > 0 || phase[Z - 1] != none) /* they are alike */
#define BEGIN(s) d_step { phase[Z] == none && tries[Z] < (Z == 0 -> TRIES : OTHER_TRIES) && s <= Z * (PERMITS > 0) && FIRST_TIME_IN_TURN -> \
        phase[Z] = asking; slot[Z] = s; \
        for (i : 0 .. FENCE * TOKENS - 1) { highest[Z] = (fence[i] > highest[Z] -> fence[i] : highest[Z]) } \
        ask(Z, acquire); printf("Client %d asks all nodes for the lock.\n", Z) }
active [CLIENTS] proctype Client() {
    do
    :: BEGIN(0) :: BEGIN(1)
    :: d_step { phase[Z] == asking -> count_votes(Z);
        if :: m > 0 -> phase[Z] = granted; left[Z] = (NO_SECOND_CHECK -> m : 0); printf("Client %d has its quorum.\n", Z) :: else fi }
    :: d_step { phase[Z] == granted -> check_grant(Z);
        if
        :: k == 0 -> printf("The callback of client %d comes too late.\n", Z); give_up(Z)
        :: k > 0 && ok -> phase[Z] = held; left[Z] = k; ended[Z] = false;
            printf("Client %d is told that it holds the lock, for %d ticks.\n", Z, k);
            if :: FENCE -> printf("Its token is %d.\n", m); judge_fence(Z, TOKEN(Z)) :: else fi;
            judge_window(Z)
        :: else fi }
    :: d_step { HOLDS(Z) && left[Z] < WORTH && !NO_CLOCK -> ask(Z, renew); printf("Client %d asks all nodes to renew.\n", Z) }
    :: d_step { (phase[Z] == asking || phase[Z] == granted) && !FIRM -> printf("Client %d gives up.\n", Z); give_up(Z) }
    :: d_step { phase[Z] == held -> printf("Client %d releases the lock.\n", Z); tell_end(Z); give_up(Z) }
    :: d_step { phase[Z] == held && left[Z] == 0 || LOST_AFTER_RELEASE && phase[Z] == none && ended[Z] -> /* rule 3.5: once a grant */
        printf("Client %d is told that it lost the lock.\n", Z); tell_end(Z); give_up(Z) }
    od }

#define M (_pid - CLIENTS * NODES - CLIENTS)
#define EXPIRES(t) d_step { t < TOKENS && key[KEY(M, t % TOKENS)] == 1 -> \
        key[KEY(M, t % TOKENS)] = 0; printf("The key of client %d on node %d expires.\n", OWNER(t), M) }
#define ANOTHER_PROCESS restarts--; restart(M); other_run[FLIPS * M] = (FLIPS > 0); foreign[FLIPS * M] = 0
active [NODES] proctype Node() {
    do
    :: EXPIRES(0) :: EXPIRES(1) :: EXPIRES(2) :: EXPIRES(3)
    :: d_step { ahead > 0 && phase[0] == none && tries[0] == 0 -> ahead--; counter[FENCE * M]++;
        printf("The counter of node %d is ahead by 1.\n", M) }
    :: d_step { restarts > 0 -> ANOTHER_PROCESS; printf("Node %d restarts with its memory.\n", M) }
    :: d_step { restarts > 0 -> ANOTHER_PROCESS; forget(M); printf("Node %d restarts without its memory.\n", M) }
    :: d_step { FLIPS && restarts > 0 -> restarts--; restart(M); printf("Node %d has another replication id: its replicas were away.\n", M) }
    :: d_step { FLIPS && restarts > 0 -> restarts--; restart(M); forget(M); foreign[FLIPS * M] = 1;
        printf("Node %d was a replica, and has the memory of another server.\n", M) }
    :: d_step { foreign[FLIPS * M] == 1 -> foreign[FLIPS * M] = 2; printf("Node %d has no trace of that any more.\n", M) }
    :: d_step { flushes > 0 -> flushes--; guarded[M] = false; forget(M); printf("Node %d gets FLUSHALL.\n", M) }
    :: d_step { BOOTSTRAP_ANY && !guarded[M] -> guarded[M] = true; printf("Node %d is bootstrapped.\n", M) } /* rule 4.12: only all at a cold start */
    od }

active proctype Clock() {
    do
    :: d_step { !NO_CLOCK && now < LAST_TICK -> printf("A tick of time passes.\n"); now = now + (LAST_TICK < 255);
        for (i : 0 .. NODES * TOKENS - 1) { key[i] = (key[i] > 1 -> key[i] - 1 : key[i]) }
        for (i : 0 .. NODES - 1) { quarantine[i] = (quarantine[i] > 0 -> quarantine[i] - 1 : 0) }
        for (i : 0 .. CLIENTS * NODES - 1) {
            sent[i] = (sent[i] > 0 -> sent[i] - 1 : 0); /* rule 1.2: counted from before the request left */
            vote[i] = (vote[i] > 0 && !(TIME_OF_ANSWER && phase[i / NODES] == asking) -> vote[i] - 1 : vote[i])
        }
        for (i : 0 .. CLIENTS - 1) { left[i] = (phase[i] == held && left[i] > 0 -> left[i] - 1 : left[i]) }
        for (i : 0 .. NODES - 1) {
            for (j : 0 .. DEBTS * TOKENS - 1) {
                k = AT(OWNER(j), i);
                ok = (debt[k] & TRY(j)) || about[k] == j && (link[k] == release || link[k] == both);
                VIOLATED(key[KEY(i, j)] > 0 && j % TRIES < tries[OWNER(j)] && !ok, "I14: node %d keeps a key that client %d gave up.\n", i, OWNER(j))
            }
        }
    }
    od }
