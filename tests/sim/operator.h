/* SPDX-License-Identifier: BSD-3-Clause */
/* operator.h - faults of servers and links, and what operators do about them */
#pragma once

#include "world.h"

void operator_begin(struct world *);
void operator_heal(struct world *);
/* operator_is_out - return whether the server can never be reached again, or never vote again. */
bool operator_is_out(const struct world *, uint32_t server);
bool operator_is_needed(const struct world *);
/*
 * site_password   - write the password of that number
 * site_model      - return the memory of the server
 * site_command    - run a command as redis-cli does, with words up to the first NULL; return the reply
 * site_look_again - keys changed on the server without a command of a client: read them again
 */
void site_password(uint32_t number, char ret[16]);
struct model *site_model(struct site *);
const char *site_command(struct site *, const char *a, const char *b, const char *c, const char *d);
void site_look_again(struct site *);
/* site_stop - stop the server for good. */
void site_stop(struct site *);
/* operator_strike - let a fault that waits for this opportunity happen. */
void operator_strike(struct process *, enum opportunity);
