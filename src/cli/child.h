/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child.h - the command under the lock: one process group that must not outlive this process
 *
 * The kernel sends the command SIGKILL when this process dies (PR_SET_PDEATHSIG). What the command started
 * would survive that: see warden.h.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "signals.h"

enum child_state {
    CHILD_NONE = 0, /* not started */
    CHILD_RUNNING,
    CHILD_STOPPED, /* by a signal; alive */
    CHILD_ENDED,
};

struct child {
    enum child_state state;
    pid_t pid;       /* of the command, and of its group */
    int fd;          /* to it until it is the command; an errno comes back when that could not be executed */
    int stop_signal; /* while CHILD_STOPPED */
    int status;      /* once CHILD_ENDED: exit status, 128 + n for signal n */
    int end_signal;  /* once CHILD_ENDED: the signal that ended it, or 0 */
    int exec_errno;  /* once CHILD_ENDED: why it could not be executed; 0: it ran */
};

/* child_fork - a new process and a descriptor between both: 0 there, its id here; -1 with errno. */
pid_t child_fork(int *ret_fd);

/* child_start - a process in a group of its own that executes the command once child_go is called; false with
 * errno: no process. Where the command cannot be executed, exec_errno says so when the process has ended. */
bool child_start(struct child *child, char *const *command, const struct signals *signals);
void child_go(const struct child *child);
/* child_abandon - ends the process instead of child_go. */
void child_abandon(struct child *child);
/* child_update - reads from the kernel how the command changed; call it on SIGCHLD. True: it changed, though
 * maybe back to the same state. */
bool child_update(struct child *child);
/* child_signal - to the whole group; false with errno. No error where the group is gone already. */
bool child_signal(const struct child *child, int number);
/*
 * child_say_why - says why a command could not be executed
 *
 * For a script whose interpreter is not there the kernel gives ENOENT, as if the script was not: it is named.
 */
void child_say_why(const struct child *child, const char *command);
/* child_group_is_left - whether any process of the group lives, also after the command itself ended. */
bool child_group_is_left(const struct child *child);
/* child_group_lives - whether any process of that group lives but this one, `but`; 0: any. A zombie does not. There is
 * no system call for it: it reads /proc, and where it cannot, the answer is yes. */
bool child_group_lives(pid_t group, pid_t but);
/* child_reap_others - frees the processes that have ended and were left to us by their parents, as orphans are to
 * process 1 of a container. Those two have readers of their own. */
void child_reap_others(pid_t command, pid_t warden);
/* child_wants_terminal - whether it is stopped because it is not in the foreground of its terminal. */
bool child_wants_terminal(const struct child *child);
/* child_forget - closes what is open; what is left of the group goes on. */
void child_forget(struct child *child);
