/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admission.h - what waits for room at the nodes
 *
 * A caller may ask for more than the connections carry. What is in flight stays bounded, and what does not fit
 * waits here in the order of coming; it is neither refused nor sent in part. Waiting costs no validity, for the
 * time at which a command is sent is read when it is queued at the node.
 *
 * 1. Served first are the renewals of locks that are held, then releases, then new attempts. New attempts use
 *    half of a connection's room at most, so they never keep a renewal or a release from the wire.
 * 2. An attempt begins only when every node that can vote, and is not late, has room for its command and owes
 *    no release that had none. A late node, frozen or out of reach, is passed over.
 * 3. So much is asked at once that the nodes answer well within the node timeout: the window grows with every
 *    quick answer and shrinks with every slow one. Renewals and releases have twice the window of attempts.
 */
#ifndef QUORLOCK_LOCK_ADMISSION_H
#define QUORLOCK_LOCK_ADMISSION_H

#include "core/core.h"
#include "runtime/nodes.h"

/* A release that a node had no room for. */
struct unsent_release {
    struct link link;
};

/* What asks the nodes, and waits for room where there is none. */
struct applicant {
    struct link link;
    struct list *waits_in; /* rounds or attempts; NULL: it waits for no room */
    bool asking;           /* its attempt is under way */
};

/* What of one client waits. */
struct admission {
    struct runtime *runtime;
    struct list rounds, attempts; /* applicants that wait for either */
    struct list unsent[CORE_NODES_MAX];
    uint32_t asking;   /* applicants whose attempt is under way */
    uint32_t window;   /* so many may be, at most */
    struct waker look; /* looks for room while something waits for it */
    /* There is room. Begins what the applicant waits for; false: it could not, for want of random bytes. */
    bool (*begin)(struct applicant *);
    /* There is room. Sends the release, or adds it again. */
    void (*send)(struct unsent_release *, uint32_t node);
};

/* admission_start - of a struct with its callbacks, else zeroed. 0, or -1 out of memory. */
int admission_start(struct admission *, struct runtime *);
/* admission_limit - notes in the event what it may begin. */
void admission_limit(const struct admission *, struct core_event *);
/* admission_follow - after each step of its core: the applicant waits for what the core wants. */
void admission_follow(struct admission *, struct applicant *, enum core_wants, bool asking);
/* admission_has_release_room - whether the node takes a release now. */
bool admission_has_release_room(const struct admission *, uint32_t node);
/* admission_add_unsent - the node had no room for this release. */
void admission_add_unsent(struct admission *, struct unsent_release *, uint32_t node);
void admission_remove_unsent(struct admission *, struct unsent_release *, uint32_t node);
/* admission_update_rtt - an answer came, and took so long; the node timeout is that of its lock. */
void admission_update_rtt(struct admission *, uint32_t latency_us, uint64_t timeout_us);
/* admission_serve - begins and sends what there is room for now. */
void admission_serve(struct admission *);
/* admission_is_wanted - something waits. */
bool admission_is_wanted(const struct admission *);
/* admission_owes - a node that answers will take releases that wait. */
bool admission_owes(const struct admission *);
/* admission_leave - the applicant goes. */
void admission_leave(struct admission *, struct applicant *);

#endif
