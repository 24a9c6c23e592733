/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - a client's connections to a node, as node.h of the library promises them
 */
#ifndef QUORLOCK_SIM_LINK_H
#define QUORLOCK_SIM_LINK_H

#include "world.h"

/* What becomes of requests that were sent on a connection when it ends. */
enum link_fate { FATE_ANY, FATE_LATE, FATE_DROPPED };

/* link_open_all - a client that was born starts to connect. */
void link_open_all(struct world *, uint32_t client);
/* link_send - queues a request; false: it could not be. leaves_us is when its bytes leave. */
bool link_send(struct world *, uint32_t lock, const struct core_command *, uint64_t leaves_us);
/* link_end - the client sees its present connection end: outcomes unknown first, then the state. */
void link_end(struct world *, uint32_t client, uint32_t node, enum link_fate);
/* link_die - the client is dead: nobody hears of anything any more. */
void link_die(struct world *, uint32_t client);
/* link_node_died - every connection's far end is gone; clients see it a little later. */
void link_node_died(struct world *, uint32_t node);

/* link_delay - how long something takes on its way now, by chance. */
uint64_t link_delay(const struct world *, struct rng *, uint32_t client, uint32_t node);

/* What happens on the wire. */
void link_arrive(struct world *, const struct happening *);
void link_answer(struct world *, const struct happening *);
void link_timeout(struct world *, const struct happening *);
void link_stall(struct world *, const struct happening *);
void link_closed(struct world *, const struct happening *);
void link_greet(struct world *, const struct happening *);
void link_connect(struct world *, const struct happening *);
void link_guard(struct world *, const struct happening *);
void link_retry(struct world *, const struct happening *);

#endif
