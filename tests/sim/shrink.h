/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shrink.h - a violation with as few faults as it needs
 */
#ifndef QUORLOCK_SIM_SHRINK_H
#define QUORLOCK_SIM_SHRINK_H

#include <stdio.h>

#include "world.h"

/* shrink_plan - leaves faults out of the plan while the same invariant is violated. Ends with the violation of
 * what is left in world->violation. Returns how many faults are left. */
uint32_t shrink_plan(struct world *, struct plan *);
/* shrink_only - leaves out every fault that is not in the list "3,17,20"; "" is none. False: not such a list.
 */
bool shrink_only(struct plan *, const char *list);
/* shrink_report - the violation, the faults that are left, and how to replay it. */
void shrink_report(const struct world *, const struct plan *, enum plan_bias, FILE *);

#endif
