/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/election.h>

#include "base/expiry.h"

struct elections;

/* candidate_new - implement quorlock_candidate_new. */
int candidate_new(quorlock_candidate **ret, struct elections *, const char *name,
                  const struct quorlock_candidate_options *);
/* candidate_show_in - implement client_show_candidate: show the validity of the candidate's lock. */
void candidate_show_in(quorlock_candidate *, struct expiry *);
