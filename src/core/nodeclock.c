/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodeclock.h"

#include "validity.h"

/* Rule 3.13. */
bool nodeclock_stepped(struct nodeclock *clock, uint64_t sent_us, uint64_t received_us, uint64_t node_us,
                       uint32_t drift_ppm, uint64_t drift_fixed_us)
{
    struct nodeclock before = *clock;
    uint64_t passed_us;
    uint64_t advanced_us;

    *clock = (struct nodeclock){.known = true, .sent_us = sent_us, .node_us = node_us};
    if (!before.known) return false;
    passed_us = validity_sub(received_us, before.sent_us);
    advanced_us = validity_sub(node_us, before.node_us);
    return advanced_us > validity_add(passed_us, validity_allowance_us(passed_us, drift_ppm, drift_fixed_us));
}
