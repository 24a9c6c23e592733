/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * election.h - who leads, as far as answers of nodes show it; and when a deposed leader stands again
 *
 * A leader is the owner of a lock, and its term is the fencing token. When a grant is told, a quorum of nodes has that
 * very token in its counter. A node whose vote came late may have another, and so may one that forgot the key: before
 * it got the key back others may have raised its counter. So where a quorum shows one owner and one counter, and no
 * node of that owner a higher one, the term is certain. Else it is what a quorum shows, or the lowest counter: every
 * node that has kept the key has the token once the owner has renewed, so a later leader has a higher one in any case.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"

/* So many rounds in a row that left it in doubt: then it is unknown who leads, or what is not certain is taken. And for
 * so many rounds, from the first certain one on, the term of a leader may turn out to be higher: until then its token
 * was perhaps not agreed. */
#define ELECTION_DOUBTS 3u

enum election_sight {
    ELECTION_UNKNOWN, /* too few nodes answer, or what they show is between two leaders */
    ELECTION_NONE,    /* nobody leads, or it holds the key without a term of its own */
    ELECTION_LEADER,
};

/* What one node shows of the key. */
struct election_vote {
    bool answered;
    uint64_t owner_id; /* 0: the key is free there */
    uint64_t counter;
};

struct election_leader {
    uint64_t owner_id, term;
    bool certain;
};

/* What an observer was told. */
struct election_view {
    enum election_sight sight;
    bool told;                     /* it was told anything */
    struct election_leader leader; /* the newest that was ever told; certain: once it was */
    uint32_t higher;               /* rounds in a row that showed it, and in doubt a higher term than was told */
    uint32_t doubts;               /* rounds since it was shown that left it in doubt who leads */
    uint32_t rounds;               /* in a row that changed nothing */
};

/* election_judge - what the votes show; with ELECTION_LEADER *ret is set. More answers change nothing but UNKNOWN. */
enum election_sight election_judge(const struct election_vote *, uint32_t n, uint32_t quorum,
                                   struct election_leader *ret);
/* election_observe - takes what a round has shown, `leader` where it showed one; true: the view changed, and is to be
 * told. Terms in it never fall, and no two owners have one term: an owner with an older one is no leader. */
bool election_observe(struct election_view *, enum election_sight, const struct election_leader *);
/* election_poll_us - the pause before an observer asks again: short after a change and in doubt, else poll_us at most,
 * and not longer than the leader's lease. left_us: what is left of that. */
uint64_t election_poll_us(struct backoff_jitter *, const struct election_view *, uint64_t poll_us, uint64_t left_us);
/* election_stand_us - the pause of a leader that was deposed after leading so long. *soon: how often in a row it was
 * deposed soon, within four leases. */
uint64_t election_stand_us(struct backoff_jitter *, uint32_t *soon, uint64_t led_us, uint64_t lease_us);
