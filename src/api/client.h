/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/election.h>
#include <quorlock/quorlock.h>

#include "base/expiry.h"
#include "base/system.h"

/* client_new_on - quorlock_client_new on any system, with the memory hooks of the options as its alloc: so a
 * test runs a client in a world of its own. clock, where it is not NULL, lives as long as the client, and is for the
 * threads that read the validity of its locks. client_new_shown: quorlock_client_new with such a clock. */
int client_new_on(quorlock_client **ret, const struct system *, const struct quorlock_client_options *,
                  struct expiry_clock *clock);
int client_new_shown(quorlock_client **ret, struct event_base *, const struct quorlock_client_options *,
                     struct expiry_clock *clock);
/* client_show_lock, client_show_candidate - from now on the validity can be read there, until that is freed or its
 * client closed. Only for clients with a clock for that. */
void client_show_lock(quorlock *, struct expiry *);
void client_show_candidate(quorlock_candidate *, struct expiry *);
