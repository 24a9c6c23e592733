/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admission.h - a queue for room at the nodes
 *
 * A caller may ask for more than the connections carry. Requests in flight are bounded, and the rest waits here
 * in order, neither refused nor sent in part. Waiting costs no validity, for a command's send time is read when
 * the node takes it.
 *
 * 1. Renewals of held locks go first, then releases, then rounds that only repair, then new attempts. Repairs and new
 *    attempts use at most half of the room, so they never delay a renewal or a release.
 * 2. An attempt begins only when every node that can vote has room for its command and has no unsent release. Late
 *    nodes, which are frozen or out of reach, do not count.
 * 3. The window of attempts in flight grows with every quick answer and shrinks with every slow one, so that the
 *    nodes answer well within the node timeout. So does each node's room for renewals and releases, where it is used.
 *    An answer is slow when its request waited at the node. The way itself does not count: a distant node needs more
 *    requests in flight for as many locks in a second, and fewer would not make it answer sooner.
 */
#pragma once

#include "core/core.h"
#include "runtime/nodes.h"

/* A release that a node had no room for. */
struct unsent_release {
    struct link link;
};

/* What asks the nodes, and waits where there is no room. */
struct applicant {
    struct link link;
    enum core_wants waits : 8;
    bool asking;    /* its attempt is in flight */
    bool of_handle; /* which has no claim; else it is a claim's */
};

/* How many requests a node takes. */
struct pace {
    uint32_t room;        /* in flight, from which on renewals and releases wait */
    uint32_t way_us;      /* what an answer takes while nothing waits there; 0: unknown */
    uint64_t narrowed_us; /* when there was less room for the last time */
};

/* The queues of one client. */
struct admission {
    struct runtime *runtime;
    struct list rounds, repairs, attempts; /* applicants that wait for one of them */
    struct list unsent[CORE_NODES_MAX];
    uint32_t asking, window; /* applicants whose attempt is in flight, and how many may be */
    struct pace paces[CORE_NODES_MAX];
    struct waker look; /* looks for room while something waits */
    /* There is room. begin: begins what the applicant waits for; false: not now, without random bytes or memory. send:
     * sends the release, or adds it again. */
    bool (*begin)(struct applicant *);
    void (*send)(struct unsent_release *, uint32_t node);
};

/* admission_start - start a struct that has its callbacks, and is zeroed else. */
void admission_start(struct admission *, struct runtime *);
/* admission_has_room - return whether there is room for a round or an attempt, and none waits before it.
 * admission_limit - write into the event what its step may not begin.
 * admission_follow - after each step of its core, let the applicant wait for what the core wants.
 * admission_leave - take the applicant out. */
bool admission_has_room(const struct admission *, enum core_wants);
void admission_limit(const struct admission *, struct core_event *);
void admission_follow(struct admission *, struct applicant *, enum core_wants, bool asking);
void admission_leave(struct admission *, struct applicant *);
/* admission_has_release_room - return whether the node takes a release now.
 * admission_add_unsent - keep a release that it did not take until there is room. */
bool admission_has_release_room(const struct admission *, uint32_t node);
void admission_add_unsent(struct admission *, struct unsent_release *, uint32_t node);
/* admission_update_rtt - take over how long an answer took; timeout_us: the node timeout of its lock. */
void admission_update_rtt(struct admission *, uint32_t node, uint32_t latency_us, uint64_t timeout_us);
/* admission_serve - begin and send what there is room for now.
 * admission_is_wanted - return whether something waits.
 * admission_owes - return whether releases wait that a node will take. */
void admission_serve(struct admission *);
bool admission_is_wanted(const struct admission *);
bool admission_owes(const struct admission *);
