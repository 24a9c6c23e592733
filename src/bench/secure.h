/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secure.h - a pipelined connection of the baseline over TLS
 *
 * Not every hiredis has TLS. So bytes go through quorlock's own connection and TLS, with one write for each turn of the
 * loop. hiredis formats the requests and reads the replies, as everywhere in the baseline.
 */
#pragma once

#include <hiredis/async.h>
#include <stdbool.h>
#include <stddef.h>

struct secure;
struct system;
struct tls;
struct uri;

/* secure_open - connect; requests may be sent at once. system, tls and uri must live as long as the connection. If the
 * connection fails or ends by itself, it calls lost(), answers all requests with NULL, and is freed. NULL: it failed at
 * once. */
struct secure *secure_open(struct system *, struct tls *, const struct uri *,
                           void (*lost)(void *owner, const char *why), void *owner);
/* secure_ask - send a request. answer() gets a reply of hiredis, and a context of which only `data`, the owner, is set.
 * False: out of memory. */
bool secure_ask(struct secure *, redisCallbackFn *answer, void *arg, const char *request, size_t length);
/* secure_owes - return whether an answer is missing. */
bool secure_owes(const struct secure *);
/* secure_close - close at once, without lost(); missing answers come as NULL. Do not call it from an answer. */
void secure_close(struct secure *);
