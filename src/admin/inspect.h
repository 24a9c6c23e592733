/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inspect.h - questions about a key that no lock of ours needs to hold: inspect and break
 */
#ifndef QUORLOCK_INSPECT_H
#define QUORLOCK_INSPECT_H

#include "api/client.h"

void inspect_on_node_state(struct quorlock_client *, uint32_t node);
void inspect_on_reply(struct inspect *, uint32_t node, const struct node_reply *);
/* inspect_waiting - so many callbacks wait for inspect_notify, which runs one of them. */
size_t inspect_waiting(const struct quorlock_client *);
void inspect_notify(struct quorlock_client *);
/* inspect_sweep - frees what was told. */
void inspect_sweep(struct quorlock_client *);
/* inspect_close_all - completes everything with CLOSED. */
void inspect_close_all(struct quorlock_client *);
/* inspect_drop_all - frees everything, whatever is owed. */
void inspect_drop_all(struct quorlock_client *);

#endif
