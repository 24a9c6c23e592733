/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <assert.h>

struct core_command *command_add(struct core_lock *lock, struct step *step, uint32_t node, enum core_op op,
                                 uint64_t lease_us, bool use_eval)
{
    struct core_update *update = step->update;
    struct core_command *command;

    assert(update->n_commands < CORE_COMMANDS_MAX);
    command = &update->commands[update->n_commands++];
    command->tag.attempt = lock->attempt.number;
    command->tag.sent_us = step->now_us;
    command->tag.lease_us = lease_us;
    command->tag.round = lock->hold.round;
    command->tag.op = (uint8_t)op;
    command->tag.node = (uint8_t)node;
    command->token = lock->attempt.token;
    command->timeout_us = lock->config.node_timeout_us;
    command->fence = lock->fence;
    command->use_eval = use_eval;
    command->explain = command->silent = false;
    return command;
}
