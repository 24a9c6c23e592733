/* SPDX-License-Identifier: BSD-3-Clause */
/* shrink.h - the same run with less in it */
#pragma once

#include "world.h"

struct shrunk {
    uint32_t without; /* features */
};

/* shrink_plan - leaves out faults, users and features while the same invariant is violated. */
void shrink_plan(struct world *, struct plan *, enum plan_bias, struct shrunk *ret);
/* shrink_only - leaves out what the list "f3,f17,a2" does not name: of f and a, where one of the kind is named;
 * shrink_without - features by number. False: no such list. */
bool shrink_only(struct plan *, const char *list);
bool shrink_without(const char *list, uint32_t *ret);
void shrink_report(const struct world *, const struct plan *, enum plan_bias, const struct shrunk *, FILE *);
