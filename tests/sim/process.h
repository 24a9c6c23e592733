/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - a process on a machine: its clients, its deaths, and the faults that strike inside of it */
#pragma once

#include "world.h"

void process_boot(struct world *, uint32_t index);
/* process_kill - its process ends here and now. again_us: is started again then; NEVER: not. */
void process_kill(struct process *, bool host, uint64_t again_us);
/* process_stall - stands still, from inside one of its own callbacks or not. */
void process_stall(struct process *, uint64_t for_us, bool suspend);
/* process_at - an opportunity for a fault; false: the process has ended in it. */
bool process_at(struct process *, enum opportunity);
/* process_bury_all - the end of the run: kills what lives, closes all clients, frees all memory. */
void process_bury_all(struct world *);
/* process_stood - it stands still, or did a moment ago. */
bool process_stood(const struct process *);
/* process_lacks_random - calls may fail for it. */
bool process_lacks_random(const struct process *);
uint64_t process_now_us(struct process *);
/* process_true_us - the first true time at which its clock may show that. */
uint64_t process_true_us(struct process *, uint64_t shown_us);
static inline struct process *process_of(struct world *world, uint32_t client)
{
    return &world->processes[world->clients[client].machine];
}
