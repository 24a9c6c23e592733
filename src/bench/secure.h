/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secure.h - a pipelined connection of the baseline over TLS
 *
 * Not every hiredis has TLS, so bytes travel as quorlock's own do: its connection, its TLS, one write a turn of the
 * loop. Requests are formatted and replies read by hiredis, as everywhere in the baseline.
 */
#pragma once

#include <hiredis/async.h>
#include <stdbool.h>
#include <stddef.h>

struct secure;
struct system;
struct tls;
struct uri;

/* secure_open - connects, and may be asked at once. The system, the TLS and the uri live as long. lost() is called when
 * it ends by itself; then what is owed comes as NULL, and it is freed. NULL: it was lost before it began. */
struct secure *secure_open(struct system *, struct tls *, const struct uri *,
                           void (*lost)(void *owner, const char *why), void *owner);
/* secure_ask - the answer comes as hiredis gives it; of the context there is only `data`, the owner. False: out of
 * memory. */
bool secure_ask(struct secure *, redisCallbackFn *answer, void *arg, const char *request, size_t length);
/* secure_owes - an answer is to come. */
bool secure_owes(const struct secure *);
/* secure_close - at once and without lost(); what is owed comes as NULL. Not from an answer. */
void secure_close(struct secure *);
