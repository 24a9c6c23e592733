/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.h - the commands that a step answers with
 */
#ifndef QUORLOCK_CORE_COMMAND_H
#define QUORLOCK_CORE_COMMAND_H

#include "state.h"

/* command_add - adds a command for a node, sent now, and returns it. */
struct core_command *command_add(struct core_lock *, struct step *, uint32_t node, enum core_op,
                                 uint64_t lease_us, bool use_eval);

#endif
