/* SPDX-License-Identifier: BSD-3-Clause */
/* shrink.h - the same run with less in it */
#pragma once

#include "world.h"

struct shrunk {
    uint32_t without; /* features */
};

/* shrink_plan - leave out faults, users and features as long as the same invariant is violated. */
void shrink_plan(struct world *, struct plan *, enum plan_bias, struct shrunk *ret);
/* shrink_only - leave out the faults, or the actors, that a list like "f3,f17,a2" does not name, if it names one of the
 * kind. shrink_without - read a list of features by number. Both return false for what is no such list. */
bool shrink_only(struct plan *, const char *list);
bool shrink_without(const char *list, uint32_t *ret);
void shrink_report(const struct world *, const struct plan *, enum plan_bias, const struct shrunk *, FILE *);
