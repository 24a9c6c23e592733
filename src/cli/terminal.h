/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * terminal.h - which process group has the foreground of the controlling terminal: ours, or the command's
 *
 * Only a foreground group may read the terminal. The command has a group of its own, so it must be given the
 * foreground; but others of our group, such as a pager at the end of our pipeline, may want it as well. So it
 * goes to the command at once where our group has no other member, else when the command is stopped for want of
 * it, and back when another member is stopped for the same reason.
 */
#ifndef QUORLOCK_CLI_TERMINAL_H
#define QUORLOCK_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int fd; /* the controlling terminal, whatever stdin is; -1: there is none */
};

void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);
/* terminal_has - whether that group has the foreground. */
bool terminal_has(const struct terminal *terminal, pid_t group);
/* terminal_offer - gives the foreground to that group, where we have it and are alone in our group. */
void terminal_offer(const struct terminal *terminal, pid_t group);
/* terminal_lend - the same, whoever else is there. True: that group has the foreground now. */
bool terminal_lend(const struct terminal *terminal, pid_t group);
/* terminal_take - takes the foreground back from that group. True: we have it now. */
bool terminal_take(const struct terminal *terminal, pid_t group);

#endif
