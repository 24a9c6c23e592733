/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notice_fixture.h - a subscriber, a server that plays scripts, and the trace of what the subscriber told
 *
 * Each callback becomes a line: "open", "closed", "listening a", "refused a", "message a one".
 */
#ifndef QUORLOCK_TESTS_NOTICE_FIXTURE_H
#define QUORLOCK_TESTS_NOTICE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node_fixture.h"
#include "redis/subscriber.h"

#define GREET                                                                                                  \
    {                                                                                                          \
        FAKE_GREETING, 0, NULL, NULL                                                                           \
    }
#define BYTES(text)                                                                                            \
    {                                                                                                          \
        FAKE_SEND, sizeof(text) - 1, text, NULL                                                                \
    }
/* Replies about channels of one letter, with payloads of three. */
#define SUBSCRIBED(channel)       "*3\r\n$9\r\nsubscribe\r\n$1\r\n" channel "\r\n:1\r\n"
#define UNSUBSCRIBED(channel)     "*3\r\n$11\r\nunsubscribe\r\n$1\r\n" channel "\r\n:0\r\n"
#define MESSAGE(channel, payload) "*3\r\n$7\r\nmessage\r\n$1\r\n" channel "\r\n$3\r\n" payload "\r\n"
#define PONG                      "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
#define NOPERM                    "-NOPERM No permissions to access a channel\r\n"

/* What the owner does from inside the callback that tells the line act_at, once. */
enum act { ACT_NONE, ACT_STOP, ACT_RESTART, ACT_FREE, ACT_LISTEN, ACT_FORGET };

/* A fixture whose node is a subscriber. */
struct notice_fixture {
    struct node_fixture common; /* first, so that its callbacks find us */
    struct subscriber_config config;
    struct subscriber *subscriber;
    const char *wants; /* one-letter channels, asked for at each open */
    const char *act_at;
    enum act act;
    char why[512];                                     /* of the latest end or refusal */
    void (*log)(void *f, int level, const char *text); /* instead of node_fixture_log */
};

/* notice_fixture_begin - a base and a server; set what differs, then notice_fixture_start. */
void notice_fixture_begin(struct notice_fixture *);
/* notice_fixture_create - a stopped subscriber, or NULL. */
struct subscriber *notice_fixture_create(struct notice_fixture *);
void notice_fixture_start(struct notice_fixture *);
/* notice_fixture_begin_with - all of it on channels of these letters, the first connection playing that script.
 */
void notice_fixture_begin_with(struct notice_fixture *, const char *wants, const struct fake_step *script);
void notice_fixture_end(struct notice_fixture *);
void notice_fixture_act(struct notice_fixture *);
unsigned times_in(const char *text, const char *part);

#endif
