/* SPDX-License-Identifier: BSD-3-Clause */
/* membership.h - the clients get another set of nodes, one process after the other */
#pragma once

#include "world.h"

/* membership_set - that client's nodes. membership_server: the server behind one of them. membership_quorum: how many
 * of them must grant. */
const struct plan_set *membership_set(const struct world *, uint32_t client);
uint32_t membership_server(const struct world *, uint32_t client, uint32_t node);
uint32_t membership_quorum(const struct world *, uint32_t client);
/* membership_is_renewed - it is made with what is new. membership_is_settled: all are, where there is a change. */
bool membership_is_renewed(const struct world *, const struct user_client *);
bool membership_is_settled(const struct world *);
/* membership_begin - before a reconfigure; membership_changed: it has ended with 0; membership_heal: the faults have.
 */
void membership_begin(struct world *);
void membership_changed(struct world *);
void membership_heal(struct world *);
