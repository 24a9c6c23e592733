/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/election.h>
#include <quorlock/quorlock.h>

#include <stdbool.h>

#include "base/alloc.h"
#include "base/expiry.h"
#include "base/system.h"

/* What no option gives. Zeros: nothing of it. */
struct client_extras {
    struct expiry_clock *clock; /* for threads that read the validity of the client's locks; must live as long as it */
    const struct alloc_hooks *memory;
    uint64_t buggify; /* a seed: the client makes faults up */
};

/*
 * client_new_on    - do as quorlock_client_new, on any system, and without the environment: tests run a client in a
 *                    simulated world, or with hooks for its memory
 * client_new_shown - do as quorlock_client_new, with a clock
 */
int client_new_on(quorlock_client **ret, const struct system *, const struct quorlock_client_options *,
                  const struct client_extras *, struct quorlock_error *);
int client_new_shown(quorlock_client **ret, struct event_base *, const struct quorlock_client_options *,
                     struct expiry_clock *clock, struct quorlock_error *);
/* client_log_from - log only lines of that level or a higher one. */
void client_log_from(quorlock_client *, int level);
/* client_show_lock, client_show_candidate - write the validity to *shown from now on, until the object is freed or its
 * client is closed. Only for clients with a clock. */
void client_show_lock(quorlock_lock *, struct expiry *);
void client_show_candidate(quorlock_candidate *, struct expiry *);
/* client_asks_program - return whether the client asks a function of the program for credentials. */
bool client_asks_program(const struct quorlock_client_options *options);
