/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - a process on a machine: its clients, its deaths, and the faults that strike inside of it */
#pragma once

#include "world.h"

void process_boot(struct world *, uint32_t index);
/* process_kill - end the process now, and start it again at again_us; NEVER: do not. host: servers see no end. */
void process_kill(struct process *, bool host, uint64_t again_us);
/* process_stall - stall the process for that time, from inside one of its callbacks or not. */
void process_stall(struct process *, uint64_t for_us, bool suspend);
/* process_at - let a fault use this opportunity. False: it has ended the process. */
bool process_at(struct process *, enum opportunity);
/* process_bury_all - end the run: kill all processes, close all clients, free all memory. */
void process_bury_all(struct world *);
/* process_stood - return whether the process is stalled, or was a moment ago. */
bool process_stood(const struct process *);
/* process_lacks_random - return whether calls may fail because there are no random bytes. */
bool process_lacks_random(const struct process *);
uint64_t process_now_us(struct process *);
/* process_true_us - return the first true time at which the clock of the process may show that time. */
uint64_t process_true_us(struct process *, uint64_t shown_us);
static inline struct process *process_of(struct world *world, uint32_t client)
{
    return &world->processes[world->clients[client].machine];
}
