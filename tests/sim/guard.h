/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - the restart guard
 *
 * A node that cannot be sure of its memory has no vote for one max_lease, by its own clock: whatever it may
 * have forgotten has ended then. That it cannot be sure shows in a key of its own that names the server that
 * wrote it.
 */
#ifndef QUORLOCK_SIM_GUARD_H
#define QUORLOCK_SIM_GUARD_H

#include "world.h"

/* guard_new_run - the server is another process than before. guard_new_replid - it was no master meanwhile. */
void guard_new_run(struct world *, uint32_t server);
void guard_new_replid(struct world *, uint32_t server);
/* guard_bootstrap - an operator declares that no lock is held there. */
void guard_bootstrap(struct world *, uint32_t server);
/* guard_look - the script at the end of a handshake, and of a quarantine: writes the guard where it must, and
 * answers it, with what is left of the quarantine. False: it cannot be written. */
bool guard_look(struct world *, uint32_t server, struct guard *ret_seen, uint64_t *ret_left_ms);
/* guard_broken - is the guard not what this request's connection has seen? */
bool guard_broken(const struct world *, const struct request *);
/* guard_is_strict_broken - the acquire of the strict mode looks at the server too. */
bool guard_is_strict_broken(const struct world *, const struct request *);

#endif
