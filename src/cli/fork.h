/* SPDX-License-Identifier: BSD-3-Clause */
/* fork.h - processes of ours that are joined to this one by a descriptor */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* fork_joined - make a process, and a descriptor between both: return 0 there, its id here, or -1 with errno. */
pid_t fork_joined(int *ret_fd);
/* fork_end - kill it, and wait for its end. */
void fork_end(pid_t pid);
/* fork_close_others - close all descriptors above that one; false with errno. */
bool fork_close_others(int last);
