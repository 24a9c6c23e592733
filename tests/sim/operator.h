/* SPDX-License-Identifier: BSD-3-Clause */
/* operator.h - faults of servers and links, and what operators do about them */
#pragma once

#include "world.h"

void operator_begin(struct world *);
void operator_heal(struct world *);
/* operator_is_out - that server cannot be reached, or cannot vote, for good. */
bool operator_is_out(const struct world *, uint32_t server);
bool operator_is_needed(const struct world *);
/* site_model - the memory of that server. site_command: redis-cli there, words up to the first NULL; the reply.
 * site_look_again: keys came or went there without a command of a client. */
void site_password(uint32_t number, char ret[16]);
struct model *site_model(struct site *);
const char *site_command(struct site *, const char *a, const char *b, const char *c, const char *d);
void site_look_again(struct site *);
/* site_stop - for good. */
void site_stop(struct site *);
/* operator_strike - let a fault that waits for this opportunity happen. */
void operator_strike(struct process *, enum opportunity);
