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
    int verbose; /* negative: the library says nothing */
    bool closed;
};

#define SESSION_ERROR_SIZE 512

/* session_try - session_open that says nothing: 0, or a library status with its text in `error`. */
int session_try(struct session *session, const struct settings *settings, char *error, size_t error_size);
/* session_open - 0, or the exit status after saying why. The settings' strings must outlive the session. */
int session_open(struct session *session, const struct settings *settings);
/* session_loop - runs the loop until session_leave; false when the loop failed, said already. */
bool session_loop(struct session *session);
void session_leave(struct session *session);
/*
 * session_close - ends the client, giving the answers still on their way a short grace only
 *
 * A frozen node does not hold the command up. What was sent to it is in the kernel's hands and arrives when
 * the node wakes. After session_open failed: no effect.
 */
void session_close(struct session *session);

/* session_exit - the exit status that stands for a library status. */
int session_exit(int status);

#endif
