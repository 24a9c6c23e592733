/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child.h - the command under the lock: a process group that must not outlive this process
 *
 * The kernel sends the command SIGKILL when this process dies (PR_SET_PDEATHSIG). For the processes that the command
 * has started see warden.h.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "contain.h"
#include "signals.h"

enum child_state {
    CHILD_NONE = 0, /* not started */
    CHILD_RUNNING,
    CHILD_STOPPED, /* stopped by a signal */
    CHILD_ENDED,
};

struct child {
    enum child_state state;
    pid_t pid;       /* of the command, and of its group */
    int fd;          /* to it until the command runs; if that fails, its errno comes back */
    int stop_signal; /* in CHILD_STOPPED */
    int status;      /* in CHILD_ENDED: exit status, or 128 + n for signal n */
    int end_signal;  /* in CHILD_ENDED: the signal that ended it, or 0 */
    int exec_errno;  /* in CHILD_ENDED: why it could not be executed; 0: it ran */
    struct contain contain;
};

/* child_start - make a process in a group of its own, contained as enum contain_kind says, which executes the command
 * after child_go; false with errno: it failed. If the command cannot be executed, the process ends, and exec_errno has
 * the reason. */
bool child_start(struct child *child, int kind, char *const *command, const struct signals *signals);
/* child_go - let the process execute the command. */
void child_go(const struct child *child);
/* child_abandon - kill the process instead of child_go. */
void child_abandon(struct child *child);
/* child_update - read the changes of the command from the kernel; call it on SIGCHLD. True: it changed, maybe back to
 * the same state. */
bool child_update(struct child *child);
/* child_signal - send a signal to the group; false with errno. It is no error if the group has ended. */
bool child_signal(const struct child *child, int number);
/* child_kill - send SIGKILL to the group, and to all that is contained with it; false with errno, as child_signal. */
bool child_kill(const struct child *child);
/* child_ask_to_end - send SIGTERM to the same processes, also to stopped ones. */
void child_ask_to_end(const struct child *child);
/*
 * child_say_why - print why a command could not be executed
 *
 * If a script's interpreter does not exist, the kernel returns ENOENT as for a missing script; the message names the
 * interpreter.
 */
void child_say_why(const struct child *child, const char *command);
/* child_group_is_left - return whether any process of the command's group, or of what contains it, lives, or may live
 * because /proc does not show all processes; also after the end of the command. */
bool child_group_is_left(const struct child *child);
/* child_group_lives - return whether any process of that group lives, except `but` (0: none) and zombies. There is no
 * system call for that, so it reads /proc; if it cannot, it returns true. It does not know what /proc hides. */
bool child_group_lives(pid_t group, pid_t but);
/* child_reap_others - reap ended processes whose parents have ended, as process 1 of a container must. Leave the
 * command and the warden to child_update and warden_check, and the number of an init to contain_kill. */
void child_reap_others(const struct child *child, pid_t warden);
/* child_wants_terminal - return whether it is stopped because it used the terminal in the background. */
bool child_wants_terminal(const struct child *child);
/* child_forget - close the descriptor; processes of the group go on. */
void child_forget(struct child *child);
