/* SPDX-License-Identifier: BSD-3-Clause */
/* say.h - messages on stderr, results on stdout */
#pragma once

#include "settings/text.h"

/*
 * say - print a line on stderr with "quorlock: " in front, made safe for a terminal, in one write
 *
 * If stderr is the journal, by JOURNAL_STREAM, the line begins with its priority by syslog(3), as <3>, and the journal
 * adds our name. say uses LOG_ERR, say_at the given priority.
 */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_at(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* say_text - print a text in the same way, and clear it. */
void say_text(int priority, struct text *text);

/*
 * say_within - set how long say() may wait for a stderr that takes nothing (a terminal after Ctrl-S, a full pipe)
 * before it drops the line. While a command runs under a lock this must be short: a process that waits here does not
 * renew the lock, nor does it end the command in time.
 */
void say_within(int ms);

/* put - write a whole result to stdout, and clear it: 0, or EXIT_OUTPUT or EXIT_SYSTEM after a message. */
int put(struct text *text);
