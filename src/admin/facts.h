/* SPDX-License-Identifier: BSD-3-Clause */
/* facts.h - the facts about the nodes as JSON; quorlock_client_doctor(3) lists the members */
#pragma once

#include "admin/diagnose.h"

/* facts_room  - return how many bytes that text can have, with its NUL, whatever the facts are. Names must be set.
 * facts_write - write it: an array with an object for each node */
size_t facts_room(const struct diagnose_node *nodes, uint32_t n_nodes);
void facts_write(const struct diagnose_node *nodes, uint32_t n_nodes, char *ret, size_t size);
