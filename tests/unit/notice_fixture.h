/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notice_fixture.h - a node_fixture whose node is a subscriber, and the trace of what the subscriber reported
 *
 * Each callback becomes a line: "open", "closed", "listening a", "refused a", "message a one".
 */
#ifndef QUORLOCK_TESTS_NOTICE_FIXTURE_H
#define QUORLOCK_TESTS_NOTICE_FIXTURE_H

#include "node_fixture.h"
#include "redis/subscriber.h"

#define GREET                                                                                                          \
    {                                                                                                                  \
        FAKE_GREETING, 0, NULL, NULL                                                                                   \
    }
#define BYTES(text)                                                                                                    \
    {                                                                                                                  \
        FAKE_SEND, sizeof(text) - 1, text, NULL                                                                        \
    }
/* Replies about channels of one letter, with payloads of three. */
#define SUBSCRIBED(channel)       "*3\r\n$9\r\nsubscribe\r\n$1\r\n" channel "\r\n:1\r\n"
#define UNSUBSCRIBED(channel)     "*3\r\n$11\r\nunsubscribe\r\n$1\r\n" channel "\r\n:0\r\n"
#define MESSAGE(channel, payload) "*3\r\n$7\r\nmessage\r\n$1\r\n" channel "\r\n$3\r\n" payload "\r\n"
#define PONG                      "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
#define NOPERM                    "-NOPERM No permissions to access a channel\r\n"

/* notice_fixture_begin - a base and a server; set what differs, then notice_fixture_start. */
void notice_fixture_begin(struct node_fixture *);
/* notice_fixture_create - a stopped subscriber, or NULL. */
struct subscriber *notice_fixture_create(struct node_fixture *);
void notice_fixture_start(struct node_fixture *);
/* notice_fixture_begin_with - all of it on channels of these letters, the first connection playing that script.
 */
void notice_fixture_begin_with(struct node_fixture *, const char *wants, const struct fake_step *script);
void notice_fixture_act(struct node_fixture *);

#endif
