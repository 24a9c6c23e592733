/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/election.h>

struct elections;

/* observer_new - implement quorlock_observer_new. */
int observer_new(quorlock_observer **ret, struct elections *, const char *name,
                 const struct quorlock_observer_options *);
