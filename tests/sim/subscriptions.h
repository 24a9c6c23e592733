/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriptions.h - subscriber connections: which locks get notices of releases
 *
 * Each lock that waits has one to each node, with a delay of its own: a notice may overtake the answer of the
 * release that it tells of, or come long after it. What is published while a subscription is not there, or on
 * its way when its connection ends, is heard by nobody.
 */
#ifndef QUORLOCK_SIM_SUBSCRIPTIONS_H
#define QUORLOCK_SIM_SUBSCRIPTIONS_H

#include "world.h"

/* subscriptions_follow - after each step: the lock begins to listen, or ends. */
void subscriptions_follow(struct world *, uint32_t lock);
/* subscriptions_close - the lock is gone, with all that was on its way to it. */
void subscriptions_close(struct world *, uint32_t lock);
/* subscriptions_publish - a script on this server has deleted the key of this token. */
void subscriptions_publish(struct world *, uint32_t server, uint32_t key, const struct core_token *);
/* subscriptions_count - how many listen there for a release of the key. */
uint32_t subscriptions_count(const struct world *, uint32_t server, uint32_t key);
/* subscriptions_end - the client's subscriber connection to that node ends; it connects again. */
void subscriptions_end(struct world *, uint32_t client, uint32_t node);
/* subscriptions_node_died - all of them to that server end. */
void subscriptions_node_died(struct world *, uint32_t server);

/* What happens on the wire. */
void subscriptions_subscribe(struct world *, const struct event *);
void subscriptions_listening(struct world *, const struct event *);
void subscriptions_notice(struct world *, const struct event *);

#endif
