/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nodeclock.h - has a node's clock stepped forward (rule 3.13)?
 *
 * Leases end by the node's clock. Two readings of that clock prove a step if they differ by more than the time that
 * passed by our clock, plus the drift allowance for that time. The time counts from the first request's sending to the
 * second reply's arrival. A small step, or one before the first reading, goes unnoticed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nodeclock {
    bool known;
    uint64_t sent_us; /* our clock when the request for the latest reading was sent */
    uint64_t node_us; /* the latest reading */
};

/* nodeclock_stepped - take one more reading, and tell whether it proves a step since the reading before. Readings must
 * come in the order of their requests. */
bool nodeclock_stepped(struct nodeclock *, uint64_t sent_us, uint64_t received_us, uint64_t node_us, uint32_t drift_ppm,
                       uint64_t drift_fixed_us);
