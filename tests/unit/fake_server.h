/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_server.h - a server that plays scripts, for replies that real servers seldom give
 *
 * It listens on a loopback port of its own and runs on the test's own event base. Each connection plays the
 * next script; when there is none left the connection is accepted and never answered. A script is an array of
 * steps ended by FAKE_END, FAKE_CLOSE or FAKE_RESET; after FAKE_END the connection stays open and silent.
 */
#ifndef QUORLOCK_TESTS_FAKE_SERVER_H
#define QUORLOCK_TESTS_FAKE_SERVER_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct fake_server;

enum fake_verb {
    FAKE_END = 0,
    FAKE_HANDSHAKE, /* answers all commands of a handshake as a good server; text and more, where given,
                       replace INFO server and INFO replication */
    FAKE_GREETING,  /* answers all commands up to PING, as a connection that only listens begins */
    FAKE_EXPECT,    /* waits for the next command; its words, joined by spaces and scripts by their names,
                       must begin with text */
    FAKE_SEND,      /* text, at once; ms, where given, is its length */
    FAKE_PIECES,    /* text, byte by byte, a turn of the loop each */
    FAKE_SLEEP,     /* ms */
    FAKE_CLOSE,
    FAKE_RESET, /* closes so that the peer gets ECONNRESET */
};

struct fake_step {
    enum fake_verb verb;
    unsigned ms;
    const char *text, *more;
};

struct fake_server *fake_new(struct event_base *);
void fake_free(struct fake_server *);
uint16_t fake_port(const struct fake_server *);
/* fake_play - one more script, for one connection. It is copied; the texts in it are not. */
void fake_play(struct fake_server *, const struct fake_step *script);
/* fake_write - bytes on the latest connection, outside of its script. */
void fake_write(struct fake_server *, const char *text);
unsigned fake_connections(const struct fake_server *); /* so far */
unsigned fake_commands(const struct fake_server *);    /* whole ones, on all connections */
/* fake_failure - the first expectation that was not met, or NULL. */
const char *fake_failure(const struct fake_server *);

#endif
