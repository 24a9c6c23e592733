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
#ifndef QUORLOCK_ADMISSION_H
#define QUORLOCK_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/list.h"
#include "core/core.h"

struct claim;
struct node_reply;
struct quorlock_client;

/* What of one client waits. */
struct admission {
    struct list rounds, attempts; /* claims that wait for either */
    uint32_t asking;              /* claims whose attempt is under way */
    uint32_t window;              /* so many may be, at most */
};

/* A release that a node had no room for, and whose it is. */
struct unpaid {
    struct link link;
    struct claim *claim;
};

void admission_init(struct quorlock_client *);
/* admission_limit - says in the event what it may begin. */
void admission_limit(const struct quorlock_client *, struct core_event *);
/* admission_follow - after each step: the claim waits for what its core wants. */
void admission_follow(struct claim *);
/* admission_has_release_room - whether the node takes a release now. */
bool admission_has_release_room(const struct quorlock_client *, uint32_t node);
/* admission_unpaid - the node had no room for the claim's release. */
void admission_unpaid(struct claim *, uint32_t node);
/* admission_update_rtt - an answer, and how long it took. */
void admission_update_rtt(struct claim *, const struct core_tag *, const struct node_reply *);
/* admission_serve - begins and sends what there is room for now. */
void admission_serve(struct quorlock_client *);
/* admission_is_wanted - something waits. */
bool admission_is_wanted(const struct quorlock_client *);
/* admission_owes - a node that answers will take releases that wait. */
bool admission_owes(const struct quorlock_client *);
/* admission_leave - the claim goes. */
void admission_leave(struct claim *);

#endif
