/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.h - signals as a descriptor, and the original settings for a child */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct signals {
    int fd; /* readable when signals_next returns a signal */
    sigset_t mask_before;
    struct sigaction chld_before;
};

/* signals_ignore_pipe - ignore SIGPIPE: if the reader of our output has ended, writing fails. It is the first call of
 * main, and signals_restore undoes it for a child. */
void signals_ignore_pipe(void);

/*
 * signals_open - take SIGCHLD, and every signal that may be passed on to a command; false with errno: out of
 * descriptors
 *
 * A signal that is ignored on entry (nohup, a background job of a shell) stays ignored, here and in the command.
 * SIGTTIN and SIGTTOU are taken too. They come when another process of our group uses the terminal in the background,
 * and would stop us; a stopped process renews nothing.
 */
bool signals_open(struct signals *signals);
/* signals_next - return the next signal, except a SIGCONT of this process, or 0. *ret_typed: it is SIGINT or SIGQUIT,
 * and was typed on the terminal. */
int signals_next(const struct signals *signals, bool *ret_typed);
/* signals_restore - restore mask and actions of the time of entry, in a forked child. */
void signals_restore(const struct signals *signals);
/* signals_stop - stop this process, as SIGTSTP does by default: not if its process group is orphaned, because no shell
 * could continue it. */
void signals_stop(void);
/* signals_die - die of that signal, alone or with our process group. It returns if the signal is ignored, or this
 * process cannot be killed (process 1 of a container). */
void signals_die(int number, bool group);
/* signals_end_wait - return whether that signal ends a wait; these are the signals that end a program by default. */
bool signals_end_wait(int number);
