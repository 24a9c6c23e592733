/* SPDX-License-Identifier: BSD-3-Clause */
/* rest.h - what is left on the servers in the end */
#pragma once

#include "world.h"

/*
 * rest_look   - check, at any time after the faults, that no key of a given-up attempt stays for too long
 * rest_is_due - return whether requests that were executed late are old enough to be judged
 * rest_quiet  - check that nothing is left when all locks are released and nothing fails
 * rest_late   - check the same of servers that executed requests late
 * rest_silent - check the same when every lease has ended
 */
void rest_look(struct world *);
bool rest_is_due(const struct world *);
void rest_quiet(struct world *);
void rest_late(struct world *);
void rest_silent(struct world *);
