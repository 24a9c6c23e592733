/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/claim_release.h"

#include "base/trace.h"

/* The answers of a release are counted from its beginning. */
static int claim_release_begin(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_RELEASE};
    uint32_t n_nodes = claim->all->runtime->n_nodes;
    uint64_t attempt_before = claim->released_attempt;
    enum quorlock_vote_outcome before[QUORLOCK_NODES_MAX] = {QUORLOCK_VOTE_NONE};
    int status;

    claim->released_attempt = core_attempt(claim->core);
    for (uint32_t i = 0; i < n_nodes; i++) {
        before[i] = claim->results[i].released;
        claim->results[i].released = QUORLOCK_VOTE_NONE;
    }
    status = claim_step(claim, &event);
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct node_result *result = &claim->results[i];

        /* The release in flight, if there is one, still waits for its answers. */
        if (status != 0) result->released = before[i];
        if (status == 0) note_clear_release(&result->note, &claim->all->runtime->alloc);
        if (status == 0 && result->released == QUORLOCK_VOTE_NONE && core_debts(claim->core, i) > 0) {
            result->released = QUORLOCK_VOTE_FAILED;
        }
    }
    if (status == 0) {
        TRACE1(release, keylist_name(claim->keylist));
        claim->put_off = false;
    } else {
        claim->released_attempt = attempt_before;
    }
    return status;
}

int claim_release(struct claim *claim, struct quorlock *releaser, const struct lock_callback *callback)
{
    struct core_event nobody_wants = {.type = CORE_EV_CANCEL, .cancel = {.status = CORE_CANCELED}};
    int status = claim_release_begin(claim);

    if (status != 0 && (status != QUORLOCK_BUSY || claim->releaser != NULL)) return status;
    claim->releaser = releaser;
    claim->released = *callback;
    if (status == 0) return 0;
    /* A renewal for a handle that holds it no more ends first, with its callback; claim_let_go follows. */
    claim->put_off = true;
    (void)claim_step(claim, &nobody_wants);
    return 0;
}

void claim_let_go(struct claim *claim)
{
    enum core_phase phase = core_phase_now(claim->core);

    if (claim->holds > 0 || claim->pending_holds.count > 0) return;
    if (phase != CORE_HELD && phase != CORE_LOST) return;
    /* Refused while another callback is due; it is tried again after that. */
    (void)claim_release_begin(claim);
}
