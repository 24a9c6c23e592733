/* SPDX-License-Identifier: BSD-3-Clause */
#include "election.h"

#include <assert.h>

#define SOON_LEASES  4u
#define LEASE_END_US 1000u /* nodes count leases in whole milliseconds */

static uint32_t count_like(const struct election_vote *votes, uint32_t n, const struct election_vote *like, bool term)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!votes[i].answered || votes[i].owner_id != like->owner_id) continue;
        count += !term || votes[i].counter == like->counter;
    }
    return count;
}

/* Judge a round in which the owner of this vote is on a quorum. */
static enum election_state judge_owner(const struct election_vote *votes, uint32_t n, uint32_t quorum,
                                       const struct election_vote *owner, struct election_leader *ret)
{
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    uint64_t agreed = 0;

    assert(owner->answered && owner->owner_id != 0);
    for (uint32_t i = 0; i < n; i++) {
        if (!votes[i].answered || votes[i].owner_id != owner->owner_id) continue;
        if (votes[i].counter < lowest) lowest = votes[i].counter;
        if (votes[i].counter > highest) highest = votes[i].counter;
        if (count_like(votes, n, &votes[i], true) >= quorum) agreed = votes[i].counter;
    }
    assert(lowest <= highest);
    assert(agreed == 0 || (agreed >= lowest && agreed <= highest));
    if (highest == 0) return ELECTION_NONE;
    *ret = (struct election_leader){.owner_id = owner->owner_id,
                                    .term = agreed != 0 ? agreed : lowest,
                                    .agreed = agreed != 0,
                                    .certain = agreed == highest};
    return ELECTION_LEADER;
}

/* Rule 13.2. */
enum election_state election_judge(const struct election_vote *votes, uint32_t n, uint32_t quorum,
                                   struct election_leader *ret)
{
    uint32_t unknown = 0;
    uint32_t most = 0;

    /* No two owners can have a quorum. */
    assert(quorum <= n && 2 * quorum > n);
    for (uint32_t i = 0; i < n; i++) unknown += !votes[i].answered;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t owned;

        if (!votes[i].answered || votes[i].owner_id == 0) continue;
        owned = count_like(votes, n, &votes[i], false);
        if (owned >= quorum) return judge_owner(votes, n, quorum, &votes[i], ret);
        if (owned > most) most = owned;
    }
    return most + unknown < quorum ? ELECTION_NONE : ELECTION_UNKNOWN;
}

static bool change(struct election_view *view, enum election_state state)
{
    bool changed = !view->reported || state != view->state;

    view->reported = true;
    view->state = state;
    view->doubts = 0;
    if (changed) view->rounds = 0;
    return changed;
}

static bool doubt(struct election_view *view)
{
    return ++view->doubts == ELECTION_DOUBTS;
}

static bool election_take(struct election_view *view, const struct election_leader *leader)
{
    /* Reported terms rise. */
    assert(leader->owner_id != 0 && leader->term > view->leader.term);
    view->leader = *leader;
    view->higher = 0;
    view->state = ELECTION_UNKNOWN;
    return change(view, ELECTION_LEADER);
}

/*
 * Take a round in which the reported leader leads. The reported term may be too low: it was uncertain, or the candidate
 * was suspended while its token was being raised.
 *
 * A higher term on which a quorum agrees is reported at once, for a quorum shows one higher counter of this owner only
 * after a raise, whatever one node's counter is. Any other higher term is reported after ELECTION_DOUBTS rounds, unless
 * the reported term was ever certain: a single node's counter may be above the term.
 */
static bool see_again(struct election_view *view, const struct election_leader *leader)
{
    bool is_higher = leader->term > view->leader.term;

    if (leader->agreed && is_higher) return election_take(view, leader);
    view->leader.certain = leader->certain || view->leader.certain;
    view->higher = is_higher && !view->leader.certain ? view->higher + 1 : 0;
    return view->higher == ELECTION_DOUBTS ? election_take(view, leader) : change(view, ELECTION_LEADER);
}

/* Rule 13.3. */
bool election_observe(struct election_view *view, enum election_state state, const struct election_leader *leader)
{
    bool is_newer;

    assert(view->doubts < ELECTION_DOUBTS && view->higher < ELECTION_DOUBTS);
    if (view->rounds < UINT32_MAX) view->rounds++;
    if (state == ELECTION_NONE) return change(view, state);
    if (state == ELECTION_UNKNOWN) return doubt(view) && change(view, state);
    if (leader->owner_id == view->leader.owner_id) return see_again(view, leader);
    is_newer = leader->term > view->leader.term;
    /* Another owner without a newer term took the key without fencing, or the counters were lost. */
    if (leader->certain) return is_newer ? election_take(view, leader) : change(view, ELECTION_NONE);
    if (!doubt(view)) return false;
    return is_newer ? election_take(view, leader) : change(view, ELECTION_UNKNOWN);
}

uint64_t election_poll_us(struct backoff_jitter *jitter, const struct election_view *view, uint64_t poll_us,
                          uint64_t left_us)
{
    bool settled = view->state == ELECTION_LEADER && view->doubts == 0;
    uint64_t pause_us = settled ? poll_us / 2 + backoff_uniform(jitter, poll_us / 2)
                                : backoff_observe_us(jitter, poll_us, view->rounds);

    assert(pause_us <= poll_us);
    return settled && left_us < pause_us ? left_us + LEASE_END_US : pause_us;
}

uint64_t election_stand_us(struct backoff_jitter *jitter, uint32_t *soon, uint64_t led_us, uint64_t lease_us)
{
    *soon = led_us / SOON_LEASES >= lease_us ? 0 : *soon + (*soon < UINT32_MAX);
    return backoff_stand_us(jitter, lease_us, *soon);
}
