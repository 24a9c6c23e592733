/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/election.h>

struct elections;

/* candidate_new - behind quorlock_candidate_new. */
int candidate_new(quorlock_candidate **ret, struct elections *, const char *name,
                  const struct quorlock_candidate_options *);
