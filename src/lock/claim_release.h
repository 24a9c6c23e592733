/* SPDX-License-Identifier: BSD-3-Clause */
/* claim_release.h - the keys of a claim are given back */
#pragma once

#include "lock/claim.h"

/* claim_release - begins to release for the last handle that held it. 0 or a status. */
int claim_release(struct claim *, struct quorlock *, const struct lock_callback *);
/* claim_let_go - releases the keys when no handle holds them any more. */
void claim_let_go(struct claim *);
