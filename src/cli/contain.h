/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contain.h - a fence around the command, behind which all its processes end, also those that left its group
 *
 * CONTAIN_PID is a PID namespace. Its process 1, the init, is a small process of ours: the kernel kills all others when
 * it ends. The command is its process 2, so default actions of signals apply to it, and a child of this process, so
 * that its stops and its end are seen as usual. /proc shows the processes of the namespace.
 *
 * CONTAIN_CGROUP is a cgroup of its own below the one of this process. The kernel kills all processes in it at a write
 * to its file cgroup.kill.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* In the order of the values of --contain. */
enum contain_kind { CONTAIN_NO, CONTAIN_PID, CONTAIN_CGROUP };

struct contain {
    int kind;              /* enum contain_kind */
    pid_t init;            /* CONTAIN_PID: process 1; 0: none */
    int link;              /* CONTAIN_PID: to the init, which ends when our end is closed */
    char folder[PATH_MAX]; /* CONTAIN_CGROUP: of the cgroup; "": none */
};

/* contain_check - make one, and end it, to find out whether this machine permits it: 0, or EXIT_USAGE after a message.
 */
int contain_check(int kind);
/* contain_fork - make one with a process in it, which is joined as by fork_joined: return 0 there, its id here, or -1
 * with errno. Of CONTAIN_NO it is fork_joined. */
pid_t contain_fork(struct contain *contain, int kind, int *ret_fd);
/* contain_signal - send a signal to all processes that are in it; false: there is none, or that failed. */
bool contain_signal(const struct contain *contain, int number);
/* contain_is_left - return whether a process in it lives, or may live. The command counts until it is reaped. */
bool contain_is_left(const struct contain *contain);
/* contain_kill - kill all processes in it, if there is one. */
void contain_kill(const struct contain *contain);
/* contain_end - do the same, and remove it. */
void contain_end(struct contain *contain);
