/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * terminal.h - which process group has the foreground of the controlling terminal: quorlock's, or the command's
 *
 * Only the foreground group may read the terminal. The command, in a group of its own, needs it; but so may
 * other members of quorlock's group, such as a pager at the end of its pipeline. So the command gets the
 * foreground at once where quorlock is alone in its group, else when the kernel has stopped the command for
 * reading without it. It goes back when the kernel has stopped another member for the same reason.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* terminal_open - a descriptor of the controlling terminal, whatever stdin is; -1: there is none. The functions
 * below take both. */
int terminal_open(void);
/* terminal_has - whether that group has the foreground. */
bool terminal_has(int terminal, pid_t group);
/* terminal_offer - gives the foreground to that group, where we have it and are alone in our group. */
void terminal_offer(int terminal, pid_t group);
/* terminal_lend - the same, also where we are not alone. True: that group has the foreground now. */
bool terminal_lend(int terminal, pid_t group);
/* terminal_take - takes the foreground back from that group. True: we have it now. */
bool terminal_take(int terminal, pid_t group);
