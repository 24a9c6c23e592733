/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.h - signals as a descriptor, and their undoing for a child */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct signals {
    int fd; /* readable when signals_next has something */
    sigset_t mask_before;
    struct sigaction chld_before;
};

/* signals_ignore_pipe - where the reader of our output is gone, writing fails instead of ending us. The first
 * call of main; signals_restore undoes it for a child. */
void signals_ignore_pipe(void);

/*
 * signals_open - takes SIGCHLD and every signal that may be passed on to a command
 *
 * A signal that is ignored on entry (nohup, a shell's background job) stays ignored, here and in the command.
 * SIGTTIN and SIGTTOU are taken too, so that they do not stop us: they come when another member of our process
 * group wants the terminal in the background, and a stopped process renews nothing. False with errno: no
 * descriptor.
 */
bool signals_open(struct signals *signals);
/* signals_next - the next one that came, except a SIGCONT from ourselves, or 0. *ret_typed: it is SIGINT or
 * SIGQUIT, typed on the terminal. */
int signals_next(const struct signals *signals, bool *ret_typed);
/* signals_restore - mask and actions as they were on entry; for a forked child. */
void signals_restore(const struct signals *signals);
/* signals_stop - stops this process as SIGTSTP stops any other: not where its process group is orphaned, for then no
 * shell could continue it. */
void signals_stop(void);
/* signals_die - dies of that signal, alone or with our whole process group. Returns where the signal is
 * ignored, or this process cannot be killed (the first one of a container). */
void signals_die(int number, bool group);
/* signals_end_wait - whether that signal ends a wait, as it ends a program by default. */
bool signals_end_wait(int number);
