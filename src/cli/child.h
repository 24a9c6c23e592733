/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child.h - the command under the lock: one process group that must not outlive us
 *
 * The command itself gets SIGKILL from the kernel when this process dies (PR_SET_PDEATHSIG). What it started
 * would survive that, so a small process of our own, the warden, waits for our end and then kills the group.
 */
#ifndef QUORLOCK_CLI_CHILD_H
#define QUORLOCK_CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>
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
    pid_t pid;      /* of the command, and of its group */
    int error_fd;   /* an errno comes here when the command could not be executed */
    pid_t warden;   /* 0: none */
    int warden_fd;  /* its end tells the warden that we died */
    bool terminal;  /* stdin is our terminal: the group gets the foreground when we have it */
    int status;     /* once CHILD_ENDED: exit status, 128 + n for signal n */
    int exec_errno; /* once CHILD_ENDED: why it could not be executed; 0: it ran */
};

struct child_environment {
    const char *key;  /* the first as given */
    const char *keys; /* all, one a line */
    const char *owner;
    uint64_t fence; /* 0: none */
};

/* child_start - starts the command; false with errno when there is no process to be had. That it could not be
 * executed shows when it ends. */
bool child_start(struct child *child, char *const *command, const struct child_environment *environment,
                 const struct signals *signals);
/* child_update - asks the kernel what became of the command; call it on SIGCHLD. True: the state changed. */
bool child_update(struct child *child);
/* child_signal - to the whole group; false with errno. A group that is gone already counts as told. */
bool child_signal(const struct child *child, int number);
/* child_group_is_left - whether any process of the group is left, also after the command itself ended. */
bool child_group_is_left(const struct child *child);
/* child_give_terminal, child_take_terminal - hands the foreground of the terminal over, or back, where the
 * giving side has it. No effect without a terminal. */
void child_give_terminal(const struct child *child);
void child_take_terminal(const struct child *child);
/* child_forget - ends the warden and closes what is open; the group, if any is left of it, is let go. */
void child_forget(struct child *child);

#endif
