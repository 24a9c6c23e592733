/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * terminal.h - the foreground of the controlling terminal: quorlock's process group has it, or the command's
 *
 * Only the foreground group may read the terminal. The command, in a group of its own, may need it, and so may other
 * processes of quorlock's group, such as a pager at the end of its pipeline. If quorlock is alone in its group, the
 * command gets the foreground at once. Otherwise the command gets it when the kernel has stopped the command for
 * reading the terminal, and loses it when the kernel has stopped another process of quorlock's group for the same
 * reason.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* terminal_open - open the controlling terminal; -1: there is none. The functions below take both. */
int terminal_open(void);
/* terminal_has - return whether that group has the foreground. */
bool terminal_has(int terminal, pid_t group);
/* terminal_offer - give the foreground to that group, if we have it and are alone in our group. */
void terminal_offer(int terminal, pid_t group);
/* terminal_lend - do the same, also if we are not alone. True: that group has the foreground now. */
bool terminal_lend(int terminal, pid_t group);
/* terminal_take - take the foreground back from that group. True: we have it now. */
bool terminal_take(int terminal, pid_t group);
