/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>

/* Two answers show a renewal if the end has moved further than the error of the clocks. */
enum { CLOCK_SLACK_US = 10000, CLOCK_SLACK_PART = 500 };

static void watch_state_tell(struct watch_state *state, enum watch_event_type type, const struct watch_key *key,
                             const struct watch_node *node, const char *previous)
{
    struct watch_event event = {.type = type, .key = key, .node = node, .previous = previous};

    state->tell(state->arg, &event);
}

/* watch_state_put - replace a text by a copy. */
static void watch_state_put(struct watch_state *state, char **place, const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;

    if (text != NULL && copy == NULL) state->failed = true;
    free(*place);
    *place = copy;
}

bool watch_state_init(struct watch_state *state, const char *const *names, size_t n_names)
{
    state->keys = calloc(n_names, sizeof(*state->keys));
    if (state->keys == NULL) return false;
    state->n_keys = n_names;
    for (size_t i = 0; i < n_names; i++) {
        state->keys[i] = (struct watch_key){
            .name = names[i], .verdict = WATCH_NOT_JUDGED, .waiters = -1, .waiting_since_us = WATCH_NEVER};
        for (size_t k = 0; k < QUORLOCK_NODES_MAX; k++) state->keys[i].votes[k].waiters = -1;
    }
    return true;
}

void watch_state_clear(struct watch_state *state)
{
    for (size_t i = 0; i < state->n_keys; i++) {
        struct watch_key *key = &state->keys[i];

        for (size_t k = 0; k < QUORLOCK_NODES_MAX; k++) {
            free(key->votes[k].holder);
            free(key->votes[k].error);
            free(key->votes[k].type);
        }
        free(key->holder);
    }
    for (size_t i = 0; i < QUORLOCK_NODES_MAX; i++) {
        free(state->nodes[i].name);
        free(state->nodes[i].error);
        free(state->nodes[i].quarantine_why);
    }
    free(state->keys);
    *state = (struct watch_state){0};
}

uint64_t watch_left_us(uint64_t then_us, uint64_t now_us)
{
    if (then_us == WATCH_NEVER) return WATCH_NEVER;
    return then_us > now_us ? then_us - now_us : 0;
}

/* ---- nodes ---- */

static void observe_quarantine(struct watch_state *state, struct watch_node *node,
                               const struct quorlock_inspect_node *report, uint64_t now_us)
{
    bool was = node->quarantined_until_us != 0;
    int64_t ms = report->quarantine_ms;

    /* An answer without a guard, or with an unknown one, does not end a quarantine. */
    if (ms < 0 && node->quarantined_until_us > now_us) return;
    node->quarantined_until_us = ms > 0 ? now_us + (uint64_t)ms * 1000 : 0;
    watch_state_put(state, &node->quarantine_why, report->quarantine_why);
    if (ms > 0 && !was) watch_state_tell(state, WATCH_QUARANTINE_BEGAN, NULL, node, NULL);
    if (ms <= 0 && was) watch_state_tell(state, WATCH_QUARANTINE_ENDED, NULL, node, NULL);
}

static void observe_node(struct watch_state *state, struct watch_node *node, const struct quorlock_inspect_node *report,
                         uint64_t now_us)
{
    bool up = report->state != QUORLOCK_INSPECT_DOWN;
    bool changed = node->asked ? up != node->up : !up;

    if (node->name == NULL) watch_state_put(state, &node->name, report->node);
    watch_state_put(state, &node->error, up ? NULL : report->error);
    node->asked = true;
    node->up = up;
    if (changed) watch_state_tell(state, up ? WATCH_NODE_UP : WATCH_NODE_DOWN, NULL, node, NULL);
    if (up) observe_quarantine(state, node, report, now_us);
}

/* ---- answers ---- */

static enum watch_answer answer_of(const struct quorlock_inspect_node *report)
{
    if (report->state == QUORLOCK_INSPECT_FREE) return WATCH_FREE;
    if (report->state == QUORLOCK_INSPECT_HELD) return WATCH_HELD;
    return report->state == QUORLOCK_INSPECT_FOREIGN ? WATCH_FOREIGN : WATCH_SILENT;
}

void watch_answer(struct watch_state *state, size_t key, size_t node, const struct quorlock_inspect_report *report,
                  uint64_t asked_us, uint64_t now_us)
{
    const struct quorlock_inspect_node *said = report->nodes[0];
    struct watch_vote *vote = &state->keys[key].votes[node];
    uint64_t left_us = said->ttl_ms > 0 ? (uint64_t)said->ttl_ms * 1000 : 0;
    bool endless = said->ttl_ms < 0;

    state->quorum = report->quorum;
    if (node >= state->n_nodes) state->n_nodes = node + 1;
    vote->answer = answer_of(said);
    watch_state_put(state, &vote->holder, vote->answer == WATCH_HELD ? said->holder : NULL);
    watch_state_put(state, &vote->error, vote->answer == WATCH_SILENT ? said->error : NULL);
    watch_state_put(state, &vote->type, said->type);
    vote->ends_after_us = endless ? WATCH_NEVER : asked_us + left_us;
    vote->ends_before_us = endless ? WATCH_NEVER : now_us + left_us;
    vote->parts = (struct watch_parts){.permits = said->permits};
    for (size_t i = 0; i < said->n_holders; i++) {
        vote->parts.slots += said->holders[i]->kind == QUORLOCK_HOLDER_SLOT;
        vote->parts.readers += said->holders[i]->kind == QUORLOCK_HOLDER_READER;
    }
    vote->waiters = vote->answer == WATCH_SILENT ? -1 : said->waiters;
    observe_node(state, &state->nodes[node], said, now_us);
}

/* ---- verdicts ---- */

static bool are_same(const char *holder, const char *other)
{
    return holder != NULL && other != NULL && quorlock_owner_equals(holder, other) != 0;
}

bool watch_is_named(const struct watch_key *key, const struct watch_vote *vote)
{
    return vote->answer == WATCH_HELD && are_same(key->holder, vote->holder);
}

static uint32_t count_votes(const struct watch_state *state, const struct watch_key *key, const char *holder)
{
    uint32_t n = 0;

    for (size_t i = 0; i < state->n_nodes; i++) {
        const struct watch_vote *vote = &key->votes[i];

        n += vote->answer == WATCH_HELD && are_same(vote->holder, holder);
    }
    return n;
}

/* watch_state_find_holder - return the owner on most nodes, or NULL. Of two on the same number of nodes, return the
 * former one.
 */
static const char *watch_state_find_holder(const struct watch_state *state, const struct watch_key *key,
                                           uint32_t *ret_votes)
{
    const char *holder = key->holder;
    uint32_t most = count_votes(state, key, holder);

    if (most == 0) holder = NULL;
    for (size_t i = 0; i < state->n_nodes; i++) {
        uint32_t n = count_votes(state, key, key->votes[i].holder);

        if (n <= most) continue;
        holder = key->votes[i].holder;
        most = n;
    }
    *ret_votes = most;
    return holder;
}

static int by_end(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? 1 : left > right ? -1 : 0;
}

/* find_end - return when the quorum of the key's holder ends: the Qth latest of the ends on its nodes. */
static uint64_t find_end(const struct watch_state *state, const struct watch_key *key, bool after)
{
    uint64_t ends_us[QUORLOCK_NODES_MAX] = {0};
    size_t n = 0;

    for (size_t i = 0; i < state->n_nodes; i++) {
        const struct watch_vote *vote = &key->votes[i];

        if (watch_is_named(key, vote)) ends_us[n++] = after ? vote->ends_after_us : vote->ends_before_us;
    }
    qsort(ends_us, n, sizeof(ends_us[0]), by_end);
    return n == 0 ? 0 : ends_us[n >= state->quorum ? state->quorum - 1 : n - 1];
}

static enum watch_verdict watch_state_judge(const struct watch_state *state, const struct watch_key *key,
                                            uint32_t n_votes, uint32_t *ret_answers)
{
    uint32_t n_answers = 0, foreign = 0;

    for (size_t i = 0; i < state->n_nodes; i++) {
        n_answers += key->votes[i].answer != WATCH_SILENT;
        foreign += key->votes[i].answer == WATCH_FOREIGN;
    }
    *ret_answers = n_answers;
    if (n_votes >= state->quorum) return WATCH_QUORUM;
    if (n_answers < state->quorum) return WATCH_UNKNOWN;
    if (n_votes > 0) return WATCH_TAKEN;
    return foreign > 0 ? WATCH_NO_LOCK : WATCH_IS_FREE;
}

/* find_voters - return a bit for each node that names the key's holder. */
static uint32_t find_voters(const struct watch_state *state, const struct watch_key *key)
{
    uint32_t voters = 0;

    for (size_t i = 0; i < state->n_nodes; i++)
        if (watch_is_named(key, &key->votes[i])) voters |= UINT32_C(1) << i;
    return voters;
}

/* observe_end - note the end of the quorum; true: the lock was renewed. If other nodes vote than before, the ends
 * cannot be compared. */
static bool observe_end(const struct watch_state *state, struct watch_key *key, bool same, uint64_t now_us)
{
    uint64_t after_us = find_end(state, key, true), before_us = find_end(state, key, false);
    uint64_t slack_us = CLOCK_SLACK_US + (now_us - key->judged_us) / CLOCK_SLACK_PART;
    uint32_t voters = find_voters(state, key);
    bool comparable = same && voters == key->voters;
    bool renewed = comparable && after_us > key->ends_before_us && after_us - key->ends_before_us > slack_us;
    uint64_t left_us = watch_left_us(after_us, now_us);

    /* Without a renewal, the former answers are about the same end. */
    if (comparable && !renewed && key->ends_before_us < before_us) before_us = key->ends_before_us;
    key->voters = voters;
    key->ends_after_us = after_us;
    key->ends_before_us = before_us;
    if (!same) key->lease_us = 0;
    if (left_us != WATCH_NEVER && left_us > key->lease_us) key->lease_us = left_us;
    return renewed;
}

/* observe_waiters - note the number of waiting clients; true: it has changed. */
static bool observe_waiters(const struct watch_state *state, struct watch_key *key, uint64_t now_us)
{
    int64_t before = key->waiters, most = -1;

    for (size_t i = 0; i < state->n_nodes; i++)
        if (key->votes[i].waiters > most) most = key->votes[i].waiters;
    key->waiters = most;
    if (most <= 0) key->waiting_since_us = WATCH_NEVER;
    if (most > 0 && key->waiting_since_us == WATCH_NEVER) key->waiting_since_us = now_us;
    return most != before && (most > 0 || before > 0);
}

/* reached - return the largest number that `quorum` of them reach. */
static uint32_t reached(const uint32_t *numbers, size_t n, uint32_t quorum)
{
    uint32_t best = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t reach = 0;

        for (size_t k = 0; k < n; k++) reach += numbers[k] >= numbers[i];
        if (reach >= quorum && numbers[i] > best) best = numbers[i];
    }
    return best;
}

/* observe_parts - note the numbers of permits and readers; true: they have changed. */
static bool observe_parts(const struct watch_state *state, struct watch_key *key)
{
    uint32_t permits[QUORLOCK_NODES_MAX], slots[QUORLOCK_NODES_MAX], readers[QUORLOCK_NODES_MAX];
    struct watch_parts before = key->parts;
    size_t n = state->n_nodes;

    for (size_t i = 0; i < n; i++) {
        const struct watch_parts *parts = &key->votes[i].parts;

        permits[i] = parts->permits;
        slots[i] = parts->slots;
        readers[i] = parts->readers;
    }
    key->parts = (struct watch_parts){.permits = reached(permits, n, state->quorum),
                                      .slots = reached(slots, n, state->quorum),
                                      .readers = reached(readers, n, state->quorum)};
    return before.slots != key->parts.slots || before.readers != key->parts.readers;
}

/* has_happened - find the event between two verdicts; false: there is none. */
static bool has_happened(enum watch_verdict before, enum watch_verdict after, bool same, enum watch_event_type *ret)
{
    bool names = after == WATCH_QUORUM || after == WATCH_TAKEN;

    if (names && !same) {
        *ret = WATCH_HOLDER;
    } else if (before == after) {
        return false;
    } else if (before == WATCH_QUORUM && (after == WATCH_TAKEN || after == WATCH_UNKNOWN)) {
        *ret = WATCH_QUORUM_LOST;
    } else if (after == WATCH_QUORUM) {
        *ret = WATCH_QUORUM_GAINED;
    } else {
        *ret = after == WATCH_TAKEN     ? WATCH_HOLDER
               : after == WATCH_IS_FREE ? WATCH_FREED
               : after == WATCH_NO_LOCK ? WATCH_FOUND_NO_LOCK
                                        : WATCH_BECAME_UNKNOWN;
    }
    return true;
}

void watch_judge(struct watch_state *state, size_t index, uint64_t now_us)
{
    struct watch_key *key = &state->keys[index];
    uint32_t votes_before = key->n_votes;
    const char *holder = watch_state_find_holder(state, key, &key->n_votes);
    enum watch_verdict before = key->verdict, after = watch_state_judge(state, key, key->n_votes, &key->n_answers);
    bool same = are_same(key->holder, holder), renewed = false, happened, waits, parts;
    char *previous = key->holder;
    enum watch_event_type type = WATCH_HOLDER;

    key->verdict = after;
    if (holder != NULL || after != WATCH_UNKNOWN) {
        key->holder = NULL;
        watch_state_put(state, &key->holder, holder);
    } else {
        previous = NULL;
    }
    happened = has_happened(before, after, same, &type);
    if (key->holder != NULL && key->n_votes > 0) renewed = observe_end(state, key, same, now_us);
    key->judged_us = now_us;
    waits = observe_waiters(state, key, now_us);
    parts = after != WATCH_UNKNOWN && observe_parts(state, key);
    if (happened) watch_state_tell(state, type, key, NULL, type == WATCH_HOLDER && !same ? previous : NULL);
    if (!happened && key->n_votes != votes_before) watch_state_tell(state, WATCH_VOTES, key, NULL, NULL);
    if (!happened && renewed && after == WATCH_QUORUM) watch_state_tell(state, WATCH_RENEWED, key, NULL, NULL);
    if (!happened && parts) watch_state_tell(state, WATCH_PARTS, key, NULL, NULL);
    if (waits) watch_state_tell(state, WATCH_WAITERS, key, NULL, NULL);
    free(previous);
}
