/* SPDX-License-Identifier: BSD-3-Clause */
/* observer.c - watches an election's key, and reports changes of the leader; core/election.c decides */
#include "election/observer.h"

#include <string.h>

#include "admin/inspect.h"
#include "base/hash.h"
#include "election/elections.h"
#include "runtime/owner.h"

#define MS           UINT64_C(1000)
#define POLL_MS      1000u
#define POLL_MS_MIN  10u
#define PATIENCE_US  10000u
#define POLL_MS_MAX  3600000u
#define TOKEN_DIGITS ((size_t)(2 * CORE_TOKEN_SIZE))

_Static_assert((int)ELECTION_UNKNOWN == (int)QUORLOCK_LEADER_UNKNOWN, "states of a leader");
_Static_assert((int)ELECTION_NONE == (int)QUORLOCK_LEADER_NONE, "states of a leader");
_Static_assert((int)ELECTION_LEADER == (int)QUORLOCK_LEADER_KNOWN, "states of a leader");

struct quorlock_observer {
    struct member member; /* its deadline is the next poll */
    struct quorlock_observer_options options;
    struct listener listener;
    struct election_view view;
    bool looking; /* the nodes are being asked */
    bool again;   /* a notice came meanwhile: ask again */
    bool freed;
    char name[];
};

/* ---- the answers of the nodes ---- */

static struct election_vote vote_of(const struct quorlock_inspect_node *node)
{
    struct election_vote vote = {.counter = node->fence};
    bool is_foreign = node->state == QUORLOCK_INSPECT_FOREIGN;
    /* Readers keep candidates out, and the counter is that of an earlier leader. */
    bool leads = node->holder != NULL && !is_foreign && strcmp(node->holder, OWNER_READERS) != 0;

    if (leads) vote.owner_id = hash_text(HASH_START, node->holder) | 1;
    vote.answered = node->holder != NULL || node->state == QUORLOCK_INSPECT_FREE || is_foreign;
    return vote;
}

static enum election_state observer_judge(const struct quorlock_inspect_report *report, struct election_leader *ret)
{
    struct election_vote votes[QUORLOCK_NODES_MAX];

    for (size_t i = 0; i < report->n_nodes; i++) votes[i] = vote_of(report->nodes[i]);
    return election_judge(votes, (uint32_t)report->n_nodes, report->quorum, ret);
}

static bool observer_is_enough(const struct quorlock_inspect_report *report)
{
    struct election_leader leader;
    enum election_state state = observer_judge(report, &leader);

    return state == ELECTION_NONE || (state == ELECTION_LEADER && leader.certain);
}

/* Cut the label out of an owner, without the colon and the token that follow. Return false if the owner is not one of
 * ours. */
static bool cut_label(char *ret, size_t size, const char *owner)
{
    size_t length = strlen(owner);
    size_t label = length - TOKEN_DIGITS;

    if (length < TOKEN_DIGITS || strspn(owner + label, "0123456789abcdef") != TOKEN_DIGITS || label > size)
        return false;
    if (label > 0 && owner[label - 1] == ':') label--;
    memcpy(ret, owner, label);
    ret[label] = '\0';
    return true;
}

/* ---- looking ---- */

/* How long a silent node is waited for after a quorum has answered and the leader is uncertain. */
static uint64_t observer_patience_us(const struct quorlock_observer *observer)
{
    struct runtime *runtime = observer->member.all->runtime;
    uint64_t slowest_us = 0;

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        uint64_t round_trip_us = nodes_statistics(runtime, i).round_trip_us;

        if (round_trip_us > slowest_us) slowest_us = round_trip_us;
    }
    return PATIENCE_US + 4 * slowest_us;
}

static void observer_look(struct quorlock_observer *observer);

static void look_later(struct quorlock_observer *observer, uint64_t left_us)
{
    struct runtime *runtime = observer->member.all->runtime;
    uint64_t pause_us =
        election_poll_us(&observer->member.jitter, &observer->view, observer->options.poll_ms * MS, left_us);

    runtime_wake_at(runtime, &observer->member.waker, runtime_now_us(runtime) + pause_us);
}

static void observer_tell(struct quorlock_observer *observer, const struct quorlock_inspect_report *report)
{
    struct quorlock_leader leader = {.state = (int)observer->view.state, .term = observer->view.leader.term};
    char label[OPTIONS_LABEL_SIZE];

    if (observer->view.state == ELECTION_LEADER && report->holder != NULL) {
        leader.owner = report->holder;
        leader.text = cut_label(label, sizeof(label), report->holder) ? label : report->holder;
        leader.valid_ms = report->valid_ms;
    }
    observer->options.changed(observer, &leader, observer->options.arg);
}

static void stop_looking(struct member *member)
{
    struct quorlock_observer *observer = CONTAINER_OF(member, struct quorlock_observer, member);

    runtime_wake_at(member->all->runtime, &member->waker, UINT64_MAX);
    subscriptions_close(&member->all->locks->keylists.subscriptions, &observer->listener);
}

static void observer_destroy(struct member *member)
{
    const struct alloc *alloc = &member->all->runtime->alloc;

    stop_looking(member);
    member_leave(member);
    alloc_free(alloc, CONTAINER_OF(member, struct quorlock_observer, member));
}

static void observer_on_report(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct quorlock_observer *observer = arg;
    struct election_leader leader = {0};
    bool changed;

    observer->looking = false;
    if (observer->freed) {
        if (!observer->member.all->runtime->closing) observer_destroy(&observer->member);
        return;
    }
    if (status == QUORLOCK_ERR_CLOSED || observer->member.all->runtime->closing) return;
    changed = election_observe(&observer->view, observer_judge(report, &leader), &leader);
    if (observer->again) {
        observer_look(observer);
    } else {
        look_later(observer, report->valid_ms * MS);
    }
    if (changed) observer_tell(observer, report);
}

static void observer_look(struct quorlock_observer *observer)
{
    observer->again = observer->looking;
    if (observer->looking) return;
    runtime_wake_at(observer->member.all->runtime, &observer->member.waker, UINT64_MAX);
    if (inspect_until(observer->member.all->admin, observer->name, observer_is_enough, observer_patience_us(observer),
                      observer_on_report, observer) == 0) {
        observer->looking = true;
    } else {
        look_later(observer, UINT64_MAX);
    }
}

static void observer_on_time(struct waker *waker)
{
    observer_look(CONTAINER_OF(waker, struct quorlock_observer, member.waker));
}

/* ---- notices ---- */

/* No notice came of a release before the subscription. */
static void observer_on_confirmed(struct listener *listener)
{
    observer_look(CONTAINER_OF(listener, struct quorlock_observer, listener));
}

static void observer_on_unsubscribed(struct listener *listener, uint32_t node)
{
    (void)listener;
    (void)node;
}

static void observer_on_notice(struct listener *listener, uint32_t node, uint32_t key, uint64_t holder_id)
{
    (void)node;
    (void)key;
    (void)holder_id;
    observer_look(CONTAINER_OF(listener, struct quorlock_observer, listener));
}

static const struct listener_events listener_events = {
    .confirmed = observer_on_confirmed, .unsubscribed = observer_on_unsubscribed, .notice = observer_on_notice};

/* Listen for notices. Without memory for that the observer only polls. */
static void observer_listen(struct quorlock_observer *observer)
{
    struct runtime *runtime = observer->member.all->runtime;
    size_t length;
    char *key = alloc_joined(&runtime->alloc, runtime->key_prefix, observer->name, &length);
    const struct node_key node_key = {.text = key, .length = length};

    if (key == NULL) return;
    observer->listener.events = &listener_events;
    subscriptions_open(&observer->member.all->locks->keylists.subscriptions, &observer->listener, &node_key, 1,
                       (1u << runtime->n_nodes) - 1);
    alloc_free(&runtime->alloc, key);
}

/* ---- life ---- */

/* Check the options. place: the caller's place for the observer. */
static int observer_check(struct elections *all, const void *place, const char *name,
                          struct quorlock_observer_options *ret, const struct quorlock_observer_options *given)
{
    struct runtime *runtime = all->runtime;
    int status = elections_check(all, place, "observer");

    if (status == 0) status = options_key(name, &runtime->options, &runtime->error);
    if (status != 0) return status;
    if (given == NULL) return runtime_fail(runtime, QUORLOCK_ERR_INVAL, "options is NULL: the callback is needed");
    status = caller_copy(ret, sizeof(*ret), given, given->size, "quorlock_observer_options", &runtime->error);
    if (status != 0) return status;
    if (ret->changed == NULL)
        return runtime_fail(runtime, QUORLOCK_ERR_INVAL, "changed is NULL: an observer needs its callback");
    if (ret->poll_ms == 0) ret->poll_ms = POLL_MS;
    if (ret->poll_ms >= POLL_MS_MIN && ret->poll_ms <= POLL_MS_MAX) return 0;
    return runtime_fail(runtime, QUORLOCK_ERR_INVAL, "poll_ms is %u: it must be %u to %u", ret->poll_ms, POLL_MS_MIN,
                        POLL_MS_MAX);
}

int observer_new(quorlock_observer **ret, struct elections *all, const char *name,
                 const struct quorlock_observer_options *given)
{
    struct runtime *runtime = all->runtime;
    struct quorlock_observer_options options;
    struct quorlock_observer *observer;
    int status = observer_check(all, ret, name, &options, given);

    if (status != 0) return status;
    observer = alloc_zero(&runtime->alloc, sizeof(*observer) + strlen(name) + 1);
    if (observer == NULL) return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    observer->options = options;
    observer->member.close = stop_looking;
    observer->member.destroy = observer_destroy;
    memcpy(observer->name, name, strlen(name) + 1);
    member_join(&observer->member, all, observer_on_time);
    observer_listen(observer);
    observer_look(observer);
    *ret = observer;
    return 0;
}

void quorlock_observer_free(quorlock_observer *observer)
{
    if (observer == NULL || observer->freed) return;
    observer->freed = true;
    stop_looking(&observer->member);
    if (!observer->looking && !observer->member.all->runtime->closing) observer_destroy(&observer->member);
}
