/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * election.h - who leads, by the answers of the nodes; and when a deposed leader stands for election again
 *
 * A leader is the owner of a lock, and its term is the lock's fencing token. When the owner gets its grant, a quorum of
 * nodes has the token in its counter. Two kinds of nodes may have another counter: a node whose vote came late, and a
 * node that lost the key, because others may have raised the counter before the key was repaired.
 *
 * Rule 13.2 says which counter is the term. After the owner's first renewal every node that kept the key has the token,
 * so a later leader has a higher term in any case.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"

/* After so many uncertain rounds in a row the leader is unknown, or an uncertain leader is reported. After so many
 * rounds with a higher term than the reported one, on which no quorum agrees, the higher term is reported. */
#define ELECTION_DOUBTS 3u

enum election_state {
    ELECTION_UNKNOWN, /* less than a quorum of nodes answers, or the nodes are between two leaders */
    ELECTION_NONE,    /* nobody leads, or the owner of the key has no term of its own */
    ELECTION_LEADER,
};

/* One node's answer about the key. */
struct election_vote {
    bool answered;
    uint64_t owner_id; /* 0: the key is free */
    uint64_t counter;
};

struct election_leader {
    uint64_t owner_id, term;
    bool agreed; /* a quorum shows that term */
    bool certain;
};

/* The state that was last reported to an observer, and what was seen since. */
struct election_view {
    enum election_state state;
    bool reported;                 /* a state was reported */
    struct election_leader leader; /* the newest leader ever reported; certain: the term was certain in any round */
    uint32_t higher;               /* rounds in a row with this leader and an uncertain, higher term */
    uint32_t doubts;               /* uncertain rounds since the state was last confirmed */
    uint32_t rounds;               /* rounds in a row without a change */
};

/* election_judge - judge the answers of one round. ELECTION_LEADER sets *ret. Further answers can change only
 * ELECTION_UNKNOWN. */
enum election_state election_judge(const struct election_vote *, uint32_t n, uint32_t quorum,
                                   struct election_leader *ret);
/* election_observe - take the result of a round; `leader` with ELECTION_LEADER. Return true if the view changed, so
 * that it must be reported. Reported terms never fall, and no two owners get one term: an owner with an older term is
 * no leader. */
bool election_observe(struct election_view *, enum election_state, const struct election_leader *);
/* election_poll_us - return the pause before an observer asks again: short after a change and in doubt; otherwise at
 * most poll_us, and not beyond the end of the leader's lease. left_us: the rest of that lease. */
uint64_t election_poll_us(struct backoff_jitter *, const struct election_view *, uint64_t poll_us, uint64_t left_us);
/* election_stand_us - return the pause before a deposed leader stands again. led_us: how long it led. *soon: how often
 * in a row it was deposed within four leases. */
uint64_t election_stand_us(struct backoff_jitter *, uint32_t *soon, uint64_t led_us, uint64_t lease_us);
