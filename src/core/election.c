/* SPDX-License-Identifier: BSD-3-Clause */
#include "election.h"

#define SOON_LEASES  4u
#define LEASE_END_US 1000u /* leases are in whole milliseconds */

static uint32_t count_like(const struct election_vote *votes, uint32_t n, const struct election_vote *like, bool term)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!votes[i].answered || votes[i].owner_id != like->owner_id) continue;
        count += !term || votes[i].counter == like->counter;
    }
    return count;
}

enum election_sight election_judge(const struct election_vote *votes, uint32_t n, uint32_t quorum,
                                   struct election_leader *ret)
{
    uint32_t unknown = 0;
    uint32_t most = 0;

    for (uint32_t i = 0; i < n; i++) unknown += !votes[i].answered;
    for (uint32_t i = 0; i < n; i++) {
        const struct election_vote *vote = &votes[i];
        uint32_t owned;

        if (!vote->answered || vote->owner_id == 0) continue;
        owned = count_like(votes, n, vote, false);
        if (owned > most) most = owned;
        if (count_like(votes, n, vote, true) < quorum) continue;
        if (vote->counter == 0) return ELECTION_NONE;
        *ret = (struct election_leader){.owner_id = vote->owner_id, .term = vote->counter};
        return ELECTION_LEADER;
    }
    return most + unknown < quorum ? ELECTION_NONE : ELECTION_UNKNOWN;
}

static bool is_same(const struct election_view *view, const struct election_leader *leader)
{
    return view->leader.term != 0 && leader->owner_id == view->leader.owner_id;
}

static bool change(struct election_view *view, enum election_sight sight)
{
    bool changed = !view->told || sight != view->sight;

    view->told = true;
    view->sight = sight;
    if (changed) view->rounds = 0;
    return changed;
}

bool election_observe(struct election_view *view, enum election_sight sight, const struct election_leader *leader)
{
    bool is_newer;

    if (view->rounds < UINT32_MAX) view->rounds++;
    if (sight == ELECTION_UNKNOWN) {
        if (view->doubts < ELECTION_DOUBTS) view->doubts++;
        return view->doubts == ELECTION_DOUBTS ? change(view, sight) : false;
    }
    view->doubts = 0;
    if (sight == ELECTION_NONE) return change(view, sight);
    is_newer = leader->term > view->leader.term;
    /* Another owner with an old counter took the key without a term, or the counters were lost. */
    if (!is_newer && !is_same(view, leader)) return change(view, ELECTION_NONE);
    if (!is_newer) return change(view, sight);
    view->leader = *leader;
    view->sight = ELECTION_UNKNOWN;
    (void)change(view, sight);
    return true;
}

uint64_t election_poll_us(struct backoff_jitter *jitter, const struct election_view *view, uint64_t poll_us,
                          uint64_t left_us)
{
    bool settled = view->sight == ELECTION_LEADER && view->doubts == 0;
    uint64_t pause_us = settled ? poll_us / 2 + backoff_uniform(jitter, poll_us / 2)
                                : backoff_observe_us(jitter, poll_us, view->rounds);

    return settled && left_us < pause_us ? left_us + LEASE_END_US : pause_us;
}

uint64_t election_stand_us(struct backoff_jitter *jitter, uint32_t *soon, uint64_t led_us, uint64_t lease_us)
{
    *soon = led_us / SOON_LEASES >= lease_us ? 0 : *soon + (*soon < UINT32_MAX);
    return backoff_stand_us(jitter, lease_us, *soon);
}
