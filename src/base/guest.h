/* SPDX-License-Identifier: BSD-3-Clause */
/* guest.h - work of ours in a thread of the caller's */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct guest {
    sigset_t signals;
    int cancel;
};

/* guest_level - return how much the kernel prefers other threads to this one: its nice value, more if it only runs when
 * the machine is idle. */
int guest_level(void);
/* guest_has_room - return whether this thread's stack has room for our work. Not on a stack that is none of a thread.
 */
bool guest_has_room(void);
/*
 * guest_begin - let neither signals nor a cancelation interrupt what this thread does
 * guest_end   - undo that
 */
void guest_begin(struct guest *);
void guest_end(const struct guest *);
