/* SPDX-License-Identifier: BSD-3-Clause */
/* rest.h - what is left on the servers in the end */
#pragma once

#include "world.h"

/* rest_look - after the faults, at any time. rest_is_due: all that was executed late was long ago enough to be judged.
 */
void rest_look(struct world *);
bool rest_is_due(const struct world *);
void rest_quiet(struct world *);  /* all is released, nothing fails */
void rest_late(struct world *);   /* also what was executed late */
void rest_silent(struct world *); /* and every lease has ended */
