/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - one event loop with one client on it, for the time of one verb
 */
#ifndef QUORLOCK_CLI_SESSION_H
#define QUORLOCK_CLI_SESSION_H

#include <quorlock/quorlock.h>

#include "cli.h"

struct event_base;

struct session {
    struct event_base *base;
    quorlock_client *client;
    const struct settings *settings;
    int status; /* exit status */
    bool closed;
    char error[512]; /* why session_try failed */
};

/* session_try - session_open without a message: 0, or a library status. */
int session_try(struct session *session, const struct settings *settings);
/* session_open - 0, or the exit status after saying why. The settings must outlive the session. */
int session_open(struct session *session, const struct settings *settings);
/* session_check - the exit status for what a request to the client returned, after saying why it failed. */
int session_check(const struct session *session, int status);
/* session_run - unless `failed` is an exit status, runs the loop until session_leave; closes the session and
 * returns the exit status. */
int session_run(struct session *session, int failed);
void session_leave(struct session *session);
/*
 * session_close - ends the client, and waits a short grace for answers that are still on their way
 *
 * A frozen node does not delay the command: the kernel has what was sent to it, and the node reads it when it
 * wakes. After session_open failed: no effect.
 */
void session_close(struct session *session);

/* session_exit - the exit status for a library status. */
int session_exit(int status);

#endif
