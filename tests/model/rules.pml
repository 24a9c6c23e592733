/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules.pml - what a node does with a request, when a vote counts, when a client may hold, and what ends that
 *
 * lock.pml has the rules in all states of small worlds, trace.pml in what the library did. Both declare the state and
 * the sizes, and what VIOLATED does; the names are explained in lock.pml.
 */
/* Attempts t, u exclude each other on a node; client 0 writes, others read. Rule 8.1: a node with readers refuses a writer. */
#define CONFLICT(t, u) (SHARED -> (OWNER(t) == 0 && !READERS_UNSEEN) || OWNER(u) == 0 : !PERMITS || slot[OWNER(t)] == slot[OWNER(u)])
#define EXCLUDES(c, d) (SHARED -> (c) == 0 || (d) == 0 : !PERMITS)
/* m = for how many ticks a quorum of yeses is still worth something */
inline count_votes(c) {
    m = 0;
    for (i : 0 .. NODES - 1) {
        j = 0;
        for (k : 0 .. NODES - 1) { j = j + (vote[AT(c, k)] >= vote[AT(c, i)]) }
        j = (ONE_YES_RENEWS && phase[c] == held && j > 0 -> NEEDED(c) : j); /* rule 3.2: a renewal needs a quorum */
        m = (vote[AT(c, i)] > m && j >= NEEDED(c) -> vote[AT(c, i)] : m)
    }
}
inline judge_window(c) {
    j = 1;
    for (i : 0 .. CLIENTS - 1) {
        VIOLATED(!NO_CLOCK && i != c && HOLDS(i) && EXCLUDES(c, i), "I1, I13: clients %d and %d hold the lock at a time.\n", i, c);
        j = j + (i != c && HOLDS(i))
    }
    VIOLATED(PERMITS > 0 && j > PERMITS, "I12: %d clients hold one of %d permits.\n", j, PERMITS)
}
inline tell_end(c) { VIOLATED(ended[c], "I6: client %d is told of %d grant's end again.\n", c, 1); ended[c] = true }
/* Rule 2.4: a release that may not have been executed is owed. */
inline owe(c, n, t) { if :: DEBTS && !NO_DEBTS -> debt[AT(c, n)] = debt[AT(c, n)] | TRY(t) :: else fi }
/* Rule 2.1: an attempt that fails, is lost or is not needed any more is released on every node that it asked. */
inline give_up(c) {
    for (i : 0 .. NODES - 1) {
        k = AT(c, i);
        if
        :: !(asked[c] & BIT(i)) -> skip
        :: asked[c] & BIT(i) && NO_RELEASE -> link[k] = (link[k] == acquire -> repair : link[k])
        :: asked[c] & BIT(i) && !NO_RELEASE && (link[k] == down || link[k] == release) -> owe(c, i, TOKEN(c))
        :: asked[c] & BIT(i) && !NO_RELEASE && (link[k] == acquire || link[k] == repair) -> link[k] = both
        :: else -> link[k] = release; about[k] = TOKEN(c)
        fi;
        vote[k] = (OLD_VOTES -> vote[k] : 0); sent[k] = 0; /* rule 1.6: a vote is for the attempt that asked */
        shown[FENCE * k] = 0; want[FENCE * k] = 0
    }
    phase[c] = none; asked[c] = 0; left[c] = 0; tries[c]++
}
/* A connection ends and is made anew. Its request may go on its way as `late`, or is lost. */
inline cut(c, n) {
    k = AT(c, n);
    if :: link[k] == both || link[k] == release -> owe(c, n, about[k]) :: else fi;
    if :: DEBTS && (link[k] == both || link[k] == acquire || link[k] == repair) -> unsure[k] = unsure[k] | TRY(about[k]) :: else fi;
    want[FENCE * k] = 0; link[k] = idle; about[k] = 0; sent[k] = 0
}
/* What a node does with a request, in one step; ok: it says yes. First SET NX: */
inline node_sets(n, t, least) {
    ok = true; m = 0;
    for (j : 0 .. TOKENS - 1) {
        key[KEY(n, j)] = (NO_CLOCK -> 0 : key[KEY(n, j)]); /* without a clock, it has ended when the next one comes */
        ok = ok && !(key[KEY(n, j)] > 0 && (j == t || CONFLICT(t, j)));
        m = m + (key[KEY(n, j)] > 0)
    }
    ok = (COUNTED_PERMITS -> m < PERMITS : ok); /* rule 7.1: a permit is a slot, not one less on each node's own count */
    if
    :: FLUSHES && !guarded[n] && !GUARD_AT_CONNECT -> ok = false; renew_guard(n) /* rule 4.10: strict looks inside every acquire */
    :: else -> ok = ok && !(FLUSHES && quarantine[n] > 0 && !GUARD_AT_CONNECT)
    fi;
    key[KEY(n, t)] = (ok -> 1 + SURE : key[KEY(n, t)]);
    if :: FENCE && ok -> before[KEY(n, t)] = had[n]; had[n] = had[n] | BIT(t);
        counter[n] = (counter[n] + 1 > least || NO_FLOOR -> counter[n] + 1 : least) /* rules 5.1 and 5.4: increment with a floor */ :: else fi
}
inline node_extends(n, t) {
    ok = (key[KEY(n, t)] > 0 || EXTENDS_OTHERS); /* rule 3.1: a yes counts only where the key holds our token */
    key[KEY(n, t)] = (key[KEY(n, t)] > 0 -> 1 + SURE : 0)
}
inline node_releases(n, t) {
    ok = (key[KEY(n, t)] > 0); key[KEY(n, t)] = 0;
    for (j : 0 .. TOKENS - 1) { key[KEY(n, j)] = (DELETES_OTHERS -> 0 : key[KEY(n, j)]) } /* rule 2.2: only our own key */
    if :: FENCE && fence[t] > counter[n] -> counter[n] = fence[t] :: else fi /* rule 5.6: a release brings the token to all */
}
/* Rule 5.3: a raise of a lock that is ours is acknowledged with its own number if the counter is not above it. */
inline node_raises(n, t, number) {
    ok = (key[KEY(n, t)] > 0 || RAISE_UNOWNED);
    m = (counter[n] <= number || RAISE_WRITES_ANY -> number : counter[n]);
    counter[n] = (ok && (counter[n] <= number || RAISE_WRITES_ANY) -> number : counter[n])
}
/* Rules 4.1 and 4.2: a node without a guard of its present life does not vote for one max lease; rule 4.15: but it may have its own memory. */
inline renew_guard(n) {
    quarantine[n] = (guarded[n] || NO_GUARD || OWN_MEMORY(n) -> quarantine[n] : LONGEST - SHORT_QUARANTINE); guarded[n] = true
}
inline restart(n) {
    guarded[n] = RUN_ID_ONLY; /* rule 4.1: a promoted replica is another life, too */
    for (i : 0 .. CLIENTS - 1) { if :: !OLD_CONNECTIONS -> cut(i, n); link[k] = down :: else fi } /* rule 1.7: votes of a life */
}
inline forget(n) {
    for (i : 0 .. TOKENS - 1) { key[KEY(n, i)] = 0 }
    counter[FENCE * n] = 0
}
/* m = the number that a quorum shows, or 0: then it is raised to the highest. */
inline agree(c) {
    m = 0;
    for (i : 0 .. NODES - 1) {
        k = 0;
        for (j : 0 .. NODES - 1) {
            k = k + (vote[AT(c, j)] > 0 && shown[AT(c, j)] > 0 && /* rule 5.2: the maximum of different numbers is not enough */
                     (shown[AT(c, j)] == shown[AT(c, i)] || NO_RAISE && shown[AT(c, j)] < shown[AT(c, i)]))
        }
        m = (k >= NEEDED(c) && shown[AT(c, i)] > m -> shown[AT(c, i)] : m)
    }
}
inline judge_fence(c, t) {
    VIOLATED(m <= highest[c], "I3: token %d comes after %d was reported.\n", m, highest[c]);
    for (i : 0 .. NODES - 1) { counted[t] = counted[t] | (shown[AT(c, i)] == m -> BIT(i) : 0) }
    for (j : 0 .. TOKENS - 1) {
        VIOLATED(fence[j] == m, "I2: token %d is given twice (attempt %d).\n", m, j);
        for (i : 0 .. NODES - 1) {
            k = NO_CLOCK && fence[j] > 0 && (counted[t] & counted[j] & BIT(i));
            VIOLATED(k && ((before[KEY(i, t)] & BIT(j)) > 0) != (m > fence[j]), "I4: a node had %d and %d in another order.\n", m, fence[j])
        }
    }
    fence[t] = m
}
#define HAS_VOTE(n) (quarantine[n] == 0 || QUARANTINED_VOTES)
/* Rules 1.2 and 3.1: all nodes are asked in parallel. Rule 4.3: a node in quarantine is not asked for a vote. A node that
 * does not listen is not asked in vain. */
inline ask(c, what) {
    for (i : 0 .. NODES - 1) {
        k = AT(c, i);
        if :: link[k] == idle && (what == renew || HAS_VOTE(i)) ->
            link[k] = what; about[k] = TOKEN(c); sent[k] = WORTH; asked[c] = asked[c] | BIT(i);
            want[FENCE * k] = (FENCE && !NO_CLOCK && what == acquire -> 4 * now + 1 : 0) :: else fi
    }
}
inline take_vote(x) { vote[x] = (ok -> sent[x] : vote[x]) }
inline renew_vote(x) { vote[x] = (ok && sent[x] > vote[x] -> sent[x] : vote[x]) }
inline take_raise(c, x) { vote[x] = (ok || phase[c] == held -> vote[x] : 0); shown[x] = (phase[c] == held -> shown[x] : (ok -> m : 0)) }
/* Rule 1.5: validity is checked again. k = what is left of it; ok: a quorum shows one number, m. */
inline check_grant(c) {
    count_votes(c); k = (NO_SECOND_CHECK -> left[c] : m);
    if :: FENCE -> left[c] = k; agree(c); ok = (m > 0); k = left[c]; left[c] = 0 :: else -> ok = true fi
}
