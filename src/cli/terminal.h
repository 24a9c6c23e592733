/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * terminal.h - who has the foreground of the controlling terminal: our process group, or the command's
 *
 * Only a foreground group may read the terminal. The command has a group of its own, so it must be given the
 * foreground; but others of our group, such as a pager at the end of our pipeline, may want it as well. It goes
 * to the command at once where our group has no other member, else when the command shows that it wants it, and
 * back when another member shows the same.
 */
#ifndef QUORLOCK_CLI_TERMINAL_H
#define QUORLOCK_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TERMINAL_OTHERS_MAX = 16 };

struct terminal {
    int fd;                            /* the controlling terminal, whatever stdin is; -1: there is none */
    pid_t others[TERMINAL_OTHERS_MAX]; /* of our group, when the foreground was lent */
    size_t n_others;
};

void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);
/* terminal_offer - lends the foreground to that group, where we have it and nobody else of our group is there.
 */
void terminal_offer(struct terminal *terminal, pid_t group);
/* terminal_lend - the same, whoever else is there. True: that group has the foreground now. */
bool terminal_lend(struct terminal *terminal, pid_t group);
/* terminal_has - whether that group has the foreground. */
bool terminal_has(const struct terminal *terminal, pid_t group);
/* terminal_is_wanted - while it is lent: whether another member of our group stopped, for want of it. */
bool terminal_is_wanted(const struct terminal *terminal);
/* terminal_take - takes the foreground back where that group has it, and continues who stopped for want of it.
 */
void terminal_take(struct terminal *terminal, pid_t group);

#endif
