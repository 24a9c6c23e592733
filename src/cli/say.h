/* SPDX-License-Identifier: BSD-3-Clause */
/* say.h - lines for people on stderr, results on stdout */
#pragma once

#include "text.h"

/*
 * say - one line on stderr, "quorlock: " before it, made safe for a terminal, in one write
 *
 * Where stderr is the journal, by JOURNAL_STREAM, the line begins with its priority by syslog(3) instead, as <3>, and
 * the journal adds our name. That of say is LOG_ERR.
 */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_at(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* say_text - the same for a text, which it clears. */
void say_text(int priority, struct text *text);

/*
 * say_patience - how long say() may wait for a stderr that takes nothing (a terminal under Ctrl-S, a full pipe)
 * before it drops the line. While a lock is held this must be 0: a process that waits here neither renews the
 * lock nor ends the command in time.
 */
void say_patience(int ms);

/* put - writes a result to stdout, whole, and clears it. 0, or EXIT_OUTPUT or EXIT_SYSTEM after saying why. */
int put(struct text *text);
