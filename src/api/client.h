/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/election.h>
#include <quorlock/quorlock.h>

#include "base/expiry.h"
#include "base/system.h"

/*
 * client_new_on    - do as quorlock_client_new, on any system: tests run a client in a simulated world
 * client_new_shown - do as quorlock_client_new, with a clock
 *
 * The clock is for threads that read the validity of the client's locks. It must live as long as the client, and may be
 * NULL in client_new_on.
 */
int client_new_on(quorlock_client **ret, const struct system *, const struct quorlock_client_options *,
                  struct expiry_clock *clock, struct quorlock_error *);
int client_new_shown(quorlock_client **ret, struct event_base *, const struct quorlock_client_options *,
                     struct expiry_clock *clock, struct quorlock_error *);
/* client_log_from - log only lines of that level or a higher one. */
void client_log_from(quorlock_client *, int level);
/* client_show_lock, client_show_candidate - write the validity to *shown from now on, until the object is freed or its
 * client is closed. Only for clients with a clock. */
void client_show_lock(quorlock_lock *, struct expiry *);
void client_show_candidate(quorlock_candidate *, struct expiry *);
