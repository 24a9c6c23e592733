/* SPDX-License-Identifier: BSD-3-Clause */
/* user.h - the calls of the library's public API, and its callbacks, as promises */
#pragma once

#include "world.h"

/* user_open - make the client, and try again while there is no memory. */
void user_open(struct user_client *);
/* user_close - close the client. False: it was closed already. */
bool user_close(struct user_client *, bool inside);
/* user_forget - the process of the client has ended: forget its promises. */
void user_forget(struct user_client *);
/* user_timeout_ms, user_connect_ms - return the client's node timeout, and connect timeout. */
uint32_t user_timeout_ms(const struct world *, uint32_t client);
uint32_t user_connect_ms(const struct world *, uint32_t client);
/* What actors call. Each returns the library's status, and remembers the callback that is promised. */
int user_new(struct actor *);
int user_acquire(struct actor *, const char *adopts); /* a token; NULL: it acquires */
int user_detach(struct actor *, char ret_token[128]);
int user_extend(struct actor *, uint32_t lease_ms);
int user_release(struct actor *, bool quietly);
int user_cancel(struct actor *);
void user_free(struct actor *);
int user_inspect(struct user_client *, uint32_t key);
int user_break(struct user_client *, uint32_t key);
int user_examine(struct user_client *);
int user_bootstrap(struct user_client *, bool reconfigure);
/*
 * user_promise - make a promise; NULL: there are too many
 * user_kept    - its callback runs: the promise is kept. False: the process has ended, and nothing counts
 * user_drop    - the call failed: nothing is promised
 */
struct promise *user_promise(struct world *, uint32_t client, struct actor *, enum promise_kind, uint64_t bound_us);
bool user_kept(struct promise *);
void user_drop(struct promise *);
uint32_t user_node_timeout_ms(const struct world *, const struct actor *);
