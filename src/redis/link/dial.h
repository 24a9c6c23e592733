/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial.h - resolves an address as written, and connects to each address of a name, one after the other
 *
 * The owner has the connection and the deadlines: it asks for the next address when one failed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "redis/link/config.h"
#include "redis/link/conn.h"
#include "redis/link/tls.h"
#include "redis/link/uri.h"

#define DIAL_TEXT_SIZE 480

struct dial {
    struct conn *conn;
    const struct uri *uri;
    struct tls *tls;          /* where the uri asks for it */
    uint32_t user_timeout_ms; /* see conn_open */
    void (*resolved)(void *arg);
    void *arg;
    struct lookup *lookup;
    struct addresses addresses;
    size_t at;
    char why[DIAL_TEXT_SIZE]; /* the latest failure, but one of a server that was reached comes first */
    enum fault fault;
};

enum dial_result {
    DIAL_RESOLVING,  /* resolved() comes from the loop, as the last thing there, however late; then dial_next */
    DIAL_CONNECTING, /* CONN_CONNECTED comes from the loop */
    DIAL_FAILED,     /* no address is left: see why */
};

/* dial_init - conn, and the config's uri and tls, stay the owner's, and live as long. */
void dial_init(struct dial *, struct conn *, const struct link_config *, void (*resolved)(void *arg), void *arg);
/* dial_begin - from the first address; a name is resolved anew, unless its lookup is still under way. The connection
 * must be closed. */
enum dial_result dial_begin(struct dial *);
/* dial_next - the next address that at least begins to connect; the connection must be closed. Never RESOLVING. */
enum dial_result dial_next(struct dial *);
/* dial_left - so many addresses follow the one that was tried last. */
size_t dial_left(const struct dial *);
/* dial_blame - why the present address failed; kept in `why`, which names the address where the uri does not, unless
 * another address led to a server and this one does not. */
void dial_blame(struct dial *, enum fault, const char *problem);
/* dial_cancel - resolved() does not come any more. Fine at any time. */
void dial_cancel(struct dial *);
/* dial_address - the one that was tried last, or NULL. */
const struct sockaddr_storage *dial_address(const struct dial *);
